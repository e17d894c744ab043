# How stacks/aws/variables.tf differs from modules/aws/variables.tf.
checks = true

variable "provider_spec" {
  # Limits of this stack.
  validation {
    condition     = length([for balancer in var.provider_spec.loadBalancers : balancer if balancer.type == "network"]) == 0
    error_message = "This stack adds no instance to network load balancers, whose target groups it cannot list: leave loadBalancers of type network out, or use the provider module aws."
  }
}
