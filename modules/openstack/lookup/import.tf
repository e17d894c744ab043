# Linked into a run's folder only when a create may have been lost. What is made for a server is made first, and is found as it is: two
# ports of a name stop the run, and two servers do: nobody guesses which is the Machine's.
locals {
  lost_ports   = { for key, search in data.openstack_networking_ports_v2.lost : key => one(search.ids) if length(search.ids) > 0 }
  lost_trunks  = { for key, search in data.openstack_networking_trunks_v2.lost : key => one(search.ids) if length(search.ids) > 0 }
  lost_volumes = { for key, search in data.openstack_blockstorage_volumes_v3.lost : key => one(search.ids) if length(search.ids) > 0 }
}

data "openstack_compute_instances_v2" "lost" {
  name     = var.machine.name
  metadata = { "machine-iac.io_machine-uid" = var.machine.uid }

  lifecycle {
    postcondition {
      condition     = length(self.ids) <= 1
      error_message = "Several servers bear the Machine's UID, ${join(", ", self.ids)}: delete all but the one that is to be the Machine's."
    }
  }
}

data "openstack_networking_ports_v2" "lost" {
  for_each = local.ports

  name                 = "${var.machine.name}-${each.key}"
  description_contains = var.machine.uid

  lifecycle {
    postcondition {
      condition     = length(self.ids) <= 1
      error_message = "Several ports of one name bear the Machine's UID, ${join(", ", self.ids)}: delete all but the one that is to be the Machine's."
    }
  }
}

data "openstack_networking_trunks_v2" "lost" {
  for_each = { for key, id in local.lost_ports : key => id if local.ports[key].trunk }

  port_id = each.value

  lifecycle {
    postcondition {
      condition     = length(self.ids) <= 1
      error_message = "Several trunks of one port are there, ${join(", ", self.ids)}: delete all but the one that is to be the Machine's."
    }
  }
}

data "openstack_blockstorage_volumes_v3" "lost" {
  for_each = local.volumes

  name     = "${var.machine.name}-${each.key}"
  metadata = { "machine-iac.io_machine-uid" = var.machine.uid }

  lifecycle {
    postcondition {
      condition     = length(self.ids) <= 1
      error_message = "Several volumes of one name bear the Machine's UID, ${join(", ", self.ids)}: delete all but the one that is to be the Machine's."
    }
  }
}

import {
  for_each = toset(data.openstack_compute_instances_v2.lost.ids)
  to       = openstack_compute_instance_v2.this
  id       = each.value
}

import {
  for_each = local.lost_ports
  to       = openstack_networking_port_v2.interface[each.key]
  id       = each.value
}

import {
  for_each = local.lost_trunks
  to       = openstack_networking_trunk_v2.interface[each.key]
  id       = each.value
}

import {
  for_each = local.lost_volumes
  to       = openstack_blockstorage_volume_v3.disk[each.key]
  id       = each.value
}
