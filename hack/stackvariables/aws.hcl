# How stacks/aws/variables.tf differs from modules/aws/variables.tf.
checks = true

variable "provider_spec" {
  omit_validations = [
    "spec.placement.host.dedicatedHost: Required value: dedicatedHost is required when hostAffinity is DedicatedHost, and optional otherwise",
    "spec.placement.host.dedicatedHost.allocationStrategy: Invalid value: ${jsonencode(try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, null))}: Invalid allocationStrategy, the only allowed options are: UserProvided, Dynamic",
    "spec.placement.host.dedicatedHost.id: Forbidden: id is only allowed when allocationStrategy is Provided",
    "spec.placement.host.affinity: Forbidden: hostAffinity must be DedicatedHost when using dynamic host allocation",
    "spec.placement.host.dedicatedHost.dynamicHostAllocation.tags: Invalid value: 0: at least 1 tag must be specified",
    "spec.placement.host.dedicatedHost.dynamicHostAllocation.tags: Invalid value: ${length(try(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation.tags, []))}: maximum 50 tags can be specified",
    "loadBalancers[].name names a load balancer: write it as {name: NAME, type: network}.",
  ]

  # Limits of this stack.
  validation {
    condition     = var.provider_spec.placement.host == null ? true : var.provider_spec.placement.host.affinity != "DedicatedHost"
    error_message = "This stack makes no launch template, which affinity to a host needs: write placement.host.affinity: AnyAvailable, or use the provider module aws."
  }

  validation {
    condition     = try(var.provider_spec.placement.host.dedicatedHost, null) == null ? true : contains(["", "UserProvided"], var.provider_spec.placement.host.dedicatedHost.allocationStrategy)
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
    condition     = length([for group in var.provider_spec.securityGroups : group if group.id == "" && length(group.filters) > 0]) <= 3
    error_message = "This stack looks for three security groups: name the others by securityGroups[].id, or use the provider module aws."
  }

  validation {
    condition     = length([for balancer in var.provider_spec.loadBalancers : balancer if contains(["classic", "network"], balancer.type)]) == 0
    error_message = "This stack adds no instance to load balancers: leave loadBalancers out, or use the provider module aws."
  }
}
