# How stacks/openstack/variables.tf differs from modules/openstack/variables.tf.
checks = true

variable "provider_spec" {
  # Limits of this stack.
  validation {
    condition = sum(concat([0], [for port in var.provider_spec.ports : max(2, length(port.fixedIPs))], [
      for network in var.provider_spec.networks : "${network.uuid}${join("", values(network.filter))}" == "" ? 2 * length(network.subnets) : max(2, length(network.subnets))
    ])) <= 32
    error_message = "This stack reports at most 32 addresses, two of each port at least: leave entries of networks, their subnets and ports out, or use the provider module openstack."
  }
}

# A stack for OpenStack looks up by name in every run.
variable "recorded" {
  omit = true
}
