# How stacks/aws/variables.tf differs from modules/aws/variables.tf.
variable "provider_spec" {
  omit_validations = [
    "dedicatedHost is required when affinity is DedicatedHost, and optional otherwise",
    "placement.host.dedicatedHost.allocationStrategy is UserProvided or Dynamic: write one, or leave it out for UserProvided.",
    "id is required when allocationStrategy is UserProvided, and forbidden otherwise",
    "allocationStrategy: Dynamic makes a host for this instance alone: write affinity: DedicatedHost.",
    "allocationStrategy: Dynamic makes a host in placement.availabilityZone: write it.",
    "placement.host.dedicatedHost.dynamicHostAllocation.tags has 1 to 50 tags: write one, or leave dynamicHostAllocation out.",
    "loadBalancers[] names a load balancer, and type is classic or network: write it as {name: NAME, type: network}.",
  ]

  # Limits of this stack.
  validation {
    condition     = var.provider_spec.placement.host == null ? true : var.provider_spec.placement.host.affinity != "DedicatedHost"
    error_message = "This stack makes no launch template, which affinity to a host needs: write placement.host.affinity: AnyAvailable, or use the provider module aws."
  }

  validation {
    condition     = try(var.provider_spec.placement.host.dedicatedHost, null) == null ? true : var.provider_spec.placement.host.dedicatedHost.allocationStrategy == "UserProvided"
    error_message = "This stack makes no hosts: name one by placement.host.dedicatedHost.id, without allocationStrategy, or use the provider module aws."
  }

  validation {
    condition     = var.provider_spec.networkInterfaceType != "EFA"
    error_message = "This stack makes no launch template, which networkInterfaceType: EFA needs: leave it out, or use the provider module aws."
  }

  validation {
    condition     = var.provider_spec.publicIp == null ? true : !strcontains(var.provider_spec.placement.availabilityZone, "-wlz-")
    error_message = "This stack makes no launch template, which an address of a carrier needs: leave publicIp out in a Wavelength Zone, or use the provider module aws."
  }

  validation {
    condition     = length([for group in var.provider_spec.securityGroups : group if group.id == ""]) <= 3
    error_message = "This stack looks for three security groups: name the others by securityGroups[].id, or use the provider module aws."
  }

  validation {
    condition     = length(var.provider_spec.loadBalancers) == 0
    error_message = "This stack adds no instance to load balancers: leave loadBalancers out, or use the provider module aws."
  }
}
