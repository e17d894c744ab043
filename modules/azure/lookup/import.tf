# Linked into a run's folder only when a create may have been lost. The network interface is made first, and cannot be made twice.
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
