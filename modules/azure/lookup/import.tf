# Linked into a run's folder only when a create may have been lost. The network interface is made first, and cannot be made twice.
data "azurerm_resources" "machines" {
  type          = "Microsoft.Compute/virtualMachines"
  required_tags = { "machine-iac.io_machine-uid" = var.machine.uid }
}

data "azurerm_resources" "network_interfaces" {
  type          = "Microsoft.Network/networkInterfaces"
  required_tags = { "machine-iac.io_machine-uid" = var.machine.uid }
}

import {
  for_each = toset(data.azurerm_resources.machines.resources[*].id)
  to       = azurerm_linux_virtual_machine.this
  id       = each.value
}

import {
  for_each = toset(data.azurerm_resources.network_interfaces.resources[*].id)
  to       = azurerm_network_interface.primary
  id       = each.value
}
