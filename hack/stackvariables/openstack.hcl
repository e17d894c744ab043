# How stacks/openstack/variables.tf differs from modules/openstack/variables.tf.
variable "provider_spec" {
  omit_validations = [
    "ports[].networkID is the UUID of the port's network: write it, or fixedIPs with a subnetID of the network.",
    "ports[].nameSuffix is each port's own: letters, digits, '-', '_' and '.', and no number, which other ports are called by. Write for example nameSuffix: storage.",
    "floatingIP is an address: write it as 203.0.113.7.",
  ]

  # Limits of this stack.
  validation {
    condition     = length(var.provider_spec.additionalBlockDevices) <= 4
    error_message = "This stack makes at most 4 additionalBlockDevices: leave the others out, or use the provider module openstack."
  }

  validation {
    condition     = join("", concat([try(var.provider_spec.rootVolume.availabilityZone, "")], [for device in var.provider_spec.additionalBlockDevices : try(device.storage.volume.availabilityZone, "")])) == ""
    error_message = "Nova makes this stack's volumes, in the server's zone: leave the availabilityZone of rootVolume and additionalBlockDevices out, or use the provider module openstack."
  }

  validation {
    condition     = length(var.provider_spec.networks) + length(var.provider_spec.ports) <= 1
    error_message = "This stack makes one port: leave one entry in networks and ports together, or use the provider module openstack."
  }

  validation {
    condition     = alltrue(concat([for port in var.provider_spec.ports : port.networkID != ""], flatten([for port in var.provider_spec.ports : [for fixed in port.fixedIPs : fixed.subnetID != ""]])))
    error_message = "This stack looks for no network and subnet of a port: write ports[].networkID and ports[].fixedIPs[].subnetID, or use the provider module openstack."
  }

  validation {
    condition     = alltrue([for network in var.provider_spec.networks : length(network.subnets) <= 1])
    error_message = "This stack makes one port, in one subnet: leave one entry in networks[].subnets, or use the provider module openstack."
  }

  validation {
    condition     = !var.provider_spec.trunk && !anytrue([for port in var.provider_spec.ports : port.trunk == null ? false : port.trunk])
    error_message = "This stack makes no trunks: leave trunk and ports[].trunk out, or use the provider module openstack."
  }

  validation {
    condition     = alltrue([for suffix in var.provider_spec.ports[*].nameSuffix : can(regex("^[-_.a-zA-Z0-9]{0,60}$", suffix)) && !can(regex("^[0-9]+$", suffix))])
    error_message = "ports[].nameSuffix has letters, digits, '-', '_' and '.', and is no number: write for example nameSuffix: storage."
  }

  validation {
    condition     = var.provider_spec.floatingIP == ""
    error_message = "This stack gives no port a floating address: leave floatingIP out, or use the provider module openstack."
  }

  validation {
    condition     = length([for group in var.provider_spec.securityGroups : group if "${group.uuid}${group.filter.id}" == ""]) <= 1
    error_message = "This stack looks for one security group: name the others by securityGroups[].uuid, or use the provider module openstack."
  }

  validation {
    condition     = var.provider_spec.serverGroupName == ""
    error_message = "This stack makes no server group: name one by serverGroupID, or use the provider module openstack."
  }
}
