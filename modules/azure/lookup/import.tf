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

locals {
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
