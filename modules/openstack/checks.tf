# What OpenShift's provider takes and does not use, or what is taken as it is written and may be a mistake.
check "ignored" {
  assert {
    condition     = try(var.provider_spec.rootVolume.sourceUUID, "") == "" || contains(["", try(var.provider_spec.rootVolume.sourceUUID, "")], var.provider_spec.image)
    error_message = "providerSpec.image: ${var.provider_spec.image} is ignored, since rootVolume.sourceUUID names another image."
  }
  assert {
    condition     = var.provider_spec.rootVolume == null ? true : var.provider_spec.rootVolume.diskSize > 0
    error_message = "providerSpec.rootVolume: no volume is made without a diskSize, so that the server boots from a disk of its host."
  }
  assert {
    condition     = alltrue([for device in var.provider_spec.additionalBlockDevices : device.storage.type != "Local" || device.storage.volume == null])
    error_message = "providerSpec.additionalBlockDevices: storage.volume is ignored where the storage's type is Local."
  }
  assert {
    condition     = alltrue([for network in var.provider_spec.networks : length(network.subnets) > 0 || network.uuid != "" || join("", values(network.filter)) != ""])
    error_message = "providerSpec.networks: an entry that names neither a network nor subnets is ignored."
  }
  assert {
    condition = alltrue([
      for network in var.provider_spec.networks : "${network.uuid}${network.filter.id}" == "" || join("", [for name, value in network.filter : value if name != "id"]) == ""
    ])
    error_message = "providerSpec.networks: where uuid or filter.id names the network, the rest of its filter is ignored."
  }
  assert {
    condition = alltrue(flatten([
      for network in var.provider_spec.networks : [
        for subnet in network.subnets : "${subnet.uuid}${subnet.filter.id}" == "" || join("", [for name, value in subnet.filter : value if name != "id" && value != 0]) == ""
      ]
    ]))
    error_message = "providerSpec.networks: where uuid or filter.id names the subnet, the rest of its filter is ignored."
  }
  assert {
    condition = alltrue([
      for group in var.provider_spec.securityGroups : "${group.uuid}${group.filter.id}" == "" || join("", concat([group.name], [for name, value in group.filter : value if name != "id"])) == ""
    ])
    error_message = "providerSpec.securityGroups: where uuid or filter.id names the security group, its name and the rest of its filter are ignored."
  }
  assert {
    condition = alltrue([
      for profile in concat(var.provider_spec.networks[*].profile, var.provider_spec.ports[*].profile) : alltrue([
        for name, value in profile : name == "capabilities" && strcontains(value, "switchdev") || name == "trusted" && value == "true"
      ])
    ])
    error_message = "providerSpec.networks, ports: of a profile, capabilities with switchdev and trusted with \"true\" have an effect, and nothing else has."
  }
  assert {
    condition     = alltrue([for port in var.provider_spec.ports : port.portSecurity == false ? length(port.securityGroups) + length(port.allowedAddressPairs) == 0 : true])
    error_message = "providerSpec.ports: securityGroups and allowedAddressPairs of a port without portSecurity are ignored."
  }
}

check "unusual" {
  assert {
    condition     = alltrue([for group in var.provider_spec.securityGroups : "${group.uuid}${group.name}${join("", values(group.filter))}" != ""])
    error_message = "providerSpec.securityGroups: an entry that names nothing stands for every security group of the project: write uuid, name or filter."
  }
  assert {
    condition     = !strcontains(join("", concat([try(var.provider_spec.rootVolume.availabilityZone, "")], [for device in var.provider_spec.additionalBlockDevices : try(device.storage.volume.availabilityZone, "")])), " ")
    error_message = "providerSpec.rootVolume, additionalBlockDevices: volumes of Kubernetes cannot be in an availabilityZone with spaces in its name."
  }
}
