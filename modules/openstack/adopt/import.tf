# Linked into a run's folder only when a Machine is adopted. Ports and volumes have the names that OpenShift's actuator gives them, which
# are the module's too; where there is one port only, it may have any name.
variable "adopt" {
  type = object({
    provider_id = string
    id          = string
  })
  description = "Which server is adopted: the Machine's provider ID, openstack:///ID or openstack://REGION/ID, and the ID that a user has named. Without both, the cluster's server of the Machine's name."
}

locals {
  adopt_by_name = "${var.adopt.id}${var.adopt.provider_id}" == ""
  adopt_id      = local.adopt_by_name ? var.machine.name : var.adopt.id != "" ? var.adopt.id : try(regex("[^/]+$", var.adopt.provider_id), "none")
  found         = jsondecode(one(data.openstack_compute_instances_v2.adopted.servers))
  found_key     = "${local.found.name} (${local.adopt_id})"

  # Ports of the server, by the keys of those that are wanted.
  attached = zipmap(data.openstack_networking_ports_v2.adopted.names, data.openstack_networking_ports_v2.adopted.ids)
  found_ports = (
    length(local.ports) == 1 && length(data.openstack_networking_ports_v2.adopted.ids) == 1
    ? { for key in keys(local.ports) : key => data.openstack_networking_ports_v2.adopted.ids[0] }
    : { for key in keys(local.ports) : key => local.attached["${var.machine.name}-${key}"] if contains(keys(local.attached), "${var.machine.name}-${key}") }
  )
  found_trunks  = { for key, search in data.openstack_networking_trunks_v2.adopted : key => one(search.ids) }
  found_volumes = { for key, search in data.openstack_blockstorage_volumes_v3.adopted : key => one(search.ids) }
}

# The cluster is in the metadata or in a tag, as the installer and OpenShift's actuator write it. Without either the name must be the
# Machine's, unless a user has named the server.
data "openstack_compute_instances_v2" "adopted" {
  instance_id = local.adopt_by_name ? null : local.adopt_id
  name        = local.adopt_by_name ? var.machine.name : null
  metadata    = local.adopt_by_name ? { openshiftClusterID = var.machine.cluster_id } : null

  lifecycle {
    postcondition {
      condition     = length(self.servers) <= 1
      error_message = "Several servers of the cluster are called ${var.machine.name}, ${join(", ", self.ids)}: name the Machine's in the annotation machine-iac.io/adopt-id."
    }
    postcondition {
      condition     = length(self.servers) > 0
      error_message = "There is no server ${local.adopt_id} to adopt."
    }
    postcondition {
      condition = alltrue([
        for server in self.servers : try(jsondecode(server).metadata["openshiftClusterID"], var.machine.cluster_id) == var.machine.cluster_id
      ])
      error_message = "The server ${local.adopt_id} belongs to the cluster ${join("", [for server in self.servers : try(jsondecode(server).metadata["openshiftClusterID"], "")])}, and the Machine to the cluster ${var.machine.cluster_id}."
    }
    postcondition {
      condition = alltrue(flatten([
        for server in self.servers : [for tag in jsondecode(server).tags : !startswith(tag, "openshiftClusterID=") || tag == "openshiftClusterID=${var.machine.cluster_id}"]
      ]))
      error_message = "The server ${local.adopt_id} has the tags ${join(", ", flatten([for server in self.servers : jsondecode(server).tags]))}, of another cluster than the Machine's, ${var.machine.cluster_id}."
    }
    postcondition {
      condition = var.adopt.id != "" || alltrue([
        for server in self.servers : (
          try(jsondecode(server).metadata["openshiftClusterID"], "") != "" || jsondecode(server).name == var.machine.name
          || contains(jsondecode(server).tags, "openshiftClusterID=${var.machine.cluster_id}")
        )
      ])
      error_message = "The server ${local.adopt_id} does not prove that it is the Machine's: it has neither openshiftClusterID in its metadata or tags, nor the name ${var.machine.name}. Add it, or name the server in the annotation machine-iac.io/adopt-id."
    }
  }
}

data "openstack_networking_ports_v2" "adopted" {
  device_id = local.found.id

  lifecycle {
    postcondition {
      condition = (
        length(local.ports) == 1 && length(self.ids) == 1
        || alltrue([for key in keys(local.ports) : length([for name in self.names : name if name == "${var.machine.name}-${key}"]) == 1])
      )
      error_message = "The server ${local.found_key} has the ports ${join(", ", formatlist("%q", self.names))}; of networks and ports of the providerSpec come ${join(", ", [for key in keys(local.ports) : "${var.machine.name}-${key}"])}, each once. Rename its ports, or correct the providerSpec."
    }
  }
}

data "openstack_networking_trunks_v2" "adopted" {
  for_each = { for key, id in local.found_ports : key => id if local.ports[key].trunk }

  port_id = each.value

  lifecycle {
    postcondition {
      condition     = length(self.ids) == 1
      error_message = "The providerSpec asks for a trunk of the port ${each.value} of the server ${local.found_key}, which has ${length(self.ids)}, and none can be made for a port in use: set trunk to false."
    }
  }
}

data "openstack_blockstorage_volumes_v3" "adopted" {
  for_each = local.volumes

  name        = "${var.machine.name}-${each.key}"
  attached_to = local.found.id

  lifecycle {
    postcondition {
      condition     = length(self.ids) == 1
      error_message = "The server ${local.found_key} has ${length(self.ids)} attached volumes of the name ${var.machine.name}-${each.key}, which rootVolume or additionalBlockDevices ask for; want one. Rename it, or correct the providerSpec."
    }
  }
}

data "openstack_networking_floatingip_v2" "adopted" {
  count = var.provider_spec.floatingIP == "" ? 0 : 1

  address = var.provider_spec.floatingIP

  lifecycle {
    postcondition {
      condition     = self.port_id == local.found_ports[local.port_keys[0]]
      error_message = "floatingIP ${var.provider_spec.floatingIP} is not that of the first port of the server ${local.found_key}: associate it, or remove it from the providerSpec."
    }
  }
}

import {
  to = openstack_compute_instance_v2.this
  id = local.found.id
}

import {
  for_each = local.found_ports
  to       = openstack_networking_port_v2.interface[each.key]
  id       = each.value
}

import {
  for_each = local.found_trunks
  to       = openstack_networking_trunk_v2.interface[each.key]
  id       = each.value
}

import {
  for_each = local.found_volumes
  to       = openstack_blockstorage_volume_v3.disk[each.key]
  id       = each.value
}

import {
  for_each = { for position, address in data.openstack_networking_floatingip_v2.adopted : position => address.id }
  to       = openstack_networking_floatingip_associate_v2.public[0]
  id       = each.value
}

# A server is what it was made as, so that nothing else says that it differs.
check "server" {
  assert {
    condition     = contains(["", local.found.flavor_name], var.provider_spec.flavor)
    error_message = "providerSpec.flavor: ${var.provider_spec.flavor} is requested, the server has ${local.found.flavor_name} and keeps it."
  }
  assert {
    condition     = !local.boots_image || local.image.id == null || local.image.id == local.found.image_id
    error_message = "providerSpec.image: ${local.image.name} is requested, the server has ${local.found.image_id} and keeps it."
  }
  assert {
    condition     = var.provider_spec.keyName == local.found.key_name
    error_message = "providerSpec.keyName: ${jsonencode(var.provider_spec.keyName)} is requested, the server has ${jsonencode(local.found.key_name)} and keeps it."
  }
  assert {
    condition     = contains(["", local.found.availability_zone], var.provider_spec.availabilityZone)
    error_message = "providerSpec.availabilityZone: ${var.provider_spec.availabilityZone} is requested, the server has ${local.found.availability_zone} and keeps it."
  }
  assert {
    condition     = alltrue([for key, value in var.provider_spec.serverMetadata : try(local.found.metadata[key], null) == value])
    error_message = "providerSpec.serverMetadata: ${jsonencode(var.provider_spec.serverMetadata)} is requested, the server has ${jsonencode(local.found.metadata)} and keeps it."
  }
  assert {
    condition     = length(setsubtract(var.provider_spec.tags, local.found.tags)) == 0
    error_message = "providerSpec.tags: ${jsonencode(var.provider_spec.tags)} are requested, the server has ${jsonencode(local.found.tags)} and keeps them."
  }
  assert {
    condition     = length(data.openstack_networking_ports_v2.adopted.ids) == length(local.ports)
    error_message = "providerSpec.networks and ports: ${length(local.ports)} ports are requested, the server has ${join(", ", formatlist("%q", data.openstack_networking_ports_v2.adopted.names))}. The others stay when the Machine is deleted."
  }
}
