# Linked into a run's folder only when a create may have been lost. The network interface, the public address and data disks are made before the
# virtual machine, and cannot be made twice.
data "azurerm_resources" "machines" {
  type          = "Microsoft.Compute/virtualMachines"
  required_tags = { "machine-iac.io_machine-uid" = var.machine.uid }

  lifecycle {
    postcondition {
      condition     = length(self.resources) <= 1
      error_message = "Several virtual machines bear the Machine's UID, ${join(", ", self.resources[*].id)}: delete all but the one that is to be the Machine's."
    }
  }
}

data "azurerm_resources" "network_interfaces" {
  type          = "Microsoft.Network/networkInterfaces"
  required_tags = { "machine-iac.io_machine-uid" = var.machine.uid }

  lifecycle {
    postcondition {
      condition     = length(self.resources) <= 1
      error_message = "Several network interfaces bear the Machine's UID, ${join(", ", self.resources[*].id)}: delete all but the one that is to be the Machine's."
    }
  }
}

data "azurerm_resources" "public_addresses" {
  type          = "Microsoft.Network/publicIPAddresses"
  required_tags = { "machine-iac.io_machine-uid" = var.machine.uid }

  lifecycle {
    postcondition {
      condition     = length(self.resources) <= 1
      error_message = "Several public addresses bear the Machine's UID, ${join(", ", self.resources[*].id)}: delete all but the one that is to be the Machine's."
    }
  }
}

data "azurerm_resources" "disks" {
  type          = "Microsoft.Compute/disks"
  required_tags = { "machine-iac.io_machine-uid" = var.machine.uid }
}

# What the interface is associated with already cannot be associated once more.
data "azurerm_network_interface" "found" {
  count = length(data.azurerm_resources.network_interfaces.resources)

  name                = data.azurerm_resources.network_interfaces.resources[count.index].name
  resource_group_name = data.azurerm_resources.network_interfaces.resources[count.index].resource_group_name
}

data "azurerm_lb_backend_address_pool" "found" {
  for_each = length(data.azurerm_resources.network_interfaces.resources) > 0 ? local.pools : {}

  name            = basename(each.value.id)
  loadbalancer_id = dirname(dirname(each.value.id))
}

locals {
  found_interface = one(data.azurerm_resources.network_interfaces.resources[*].id)
  found_groups    = [for id in local.security_group_ids : id if anytrue([for one in data.azurerm_network_interface.found : one.network_security_group_id != ""])]
  found_pools = { for key, pool in data.azurerm_lb_backend_address_pool.found : key => local.pools[key] if anytrue([
    for one in pool.backend_ip_configurations : endswith(lower(one.id), lower("/networkInterfaces/${basename(local.found_interface)}/ipConfigurations/${local.pools[key].configuration}"))
  ]) }
  # The provider reads nothing that has these. They are associated before pools and the virtual machine.
  found_application_groups = {
    for name, id in local.application_security_group_ids : name => id
    if local.found_interface != null && (length(data.azurerm_resources.machines.resources) > 0 || length(local.found_pools) > 0)
  }
  found_disks = { for disk in data.azurerm_resources.disks.resources : trimprefix(disk.name, "${var.machine.name}_") => disk.id }
}

import {
  for_each = toset([for machine in data.azurerm_resources.machines.resources : machine.id if local.resource == "linux"])
  to       = azurerm_linux_virtual_machine.this[0]
  id       = each.value
}

import {
  for_each = toset([for machine in data.azurerm_resources.machines.resources : machine.id if local.resource == "windows"])
  to       = azurerm_windows_virtual_machine.this[0]
  id       = each.value
}

import {
  for_each = toset([for machine in data.azurerm_resources.machines.resources : machine.id if local.resource == "plain"])
  to       = azurerm_virtual_machine.this[0]
  id       = each.value
}

import {
  for_each = toset(data.azurerm_resources.public_addresses.resources[*].id)
  to       = azurerm_public_ip.primary[0]
  id       = each.value
}

import {
  for_each = { for suffix, id in local.found_disks : suffix => id if contains(keys(local.data_disks), suffix) }
  to       = azurerm_managed_disk.data[each.key]
  id       = each.value
}

import {
  for_each = toset(data.azurerm_resources.network_interfaces.resources[*].id)
  to       = azurerm_network_interface.primary
  id       = each.value
}

import {
  for_each = toset(local.found_groups)
  to       = azurerm_network_interface_security_group_association.primary[0]
  id       = "${local.found_interface}|${each.value}"
}

import {
  for_each = local.found_application_groups
  to       = azurerm_network_interface_application_security_group_association.primary[each.key]
  id       = "${local.found_interface}|${each.value}"
}

import {
  for_each = local.found_pools
  to       = azurerm_network_interface_backend_address_pool_association.primary[each.key]
  id       = "${local.found_interface}/ipConfigurations/${each.value.configuration}|${each.value.id}"
}
