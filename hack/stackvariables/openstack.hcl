# How stacks/openstack/variables.tf differs from modules/openstack/variables.tf.
variable "provider_spec" {
  omit_validations = [
    "ports[].networkID is the UUID of the port's network: write it, or fixedIPs with a subnetID of the network.",
  ]

  # Limits of this stack.
  validation {
    condition     = length(var.provider_spec.additionalBlockDevices) <= 4
    error_message = "This stack makes at most 4 additionalBlockDevices: leave the others out, or use the provider module openstack."
  }

  validation {
    condition     = join("", [for device in var.provider_spec.additionalBlockDevices : try(device.storage.volume.availabilityZone, "")]) == ""
    error_message = "Nova makes this stack's further volumes, in the server's zone: leave the availabilityZone of additionalBlockDevices out, or use the provider module openstack."
  }

  validation {
    condition = length(var.provider_spec.ports) + sum(concat([0], [
      for network in var.provider_spec.networks : "${network.uuid}${join("", values(network.filter))}" == "" ? length(network.subnets) : 1
    ])) <= 4
    error_message = "This stack makes at most 4 ports: leave entries of networks, their subnets and ports out, or use the provider module openstack."
  }

  validation {
    condition     = alltrue(concat([for port in var.provider_spec.ports : port.networkID != ""], flatten([for port in var.provider_spec.ports : [for fixed in port.fixedIPs : fixed.subnetID != ""]])))
    error_message = "This stack looks for no network and subnet of a port: write ports[].networkID and ports[].fixedIPs[].subnetID, or use the provider module openstack."
  }

  validation {
    condition     = alltrue([for network in var.provider_spec.networks : "${network.uuid}${join("", values(network.filter))}" == "" || length(network.subnets) <= 2])
    error_message = "This stack makes a port in at most 2 subnets: leave other entries of networks[].subnets out, or use the provider module openstack."
  }

  validation {
    condition     = length([for group in var.provider_spec.securityGroups : group if "${group.uuid}${group.filter.id}" == ""]) <= 3
    error_message = "This stack looks for three security groups: name the others by securityGroups[].uuid, or use the provider module openstack."
  }

  validation {
    condition     = var.provider_spec.serverGroupName == "" || var.provider_spec.serverGroupID == ""
    error_message = "This stack does not compare the names of server groups: leave serverGroupName or serverGroupID out, or use the provider module openstack."
  }
}
