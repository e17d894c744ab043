# Linked into a run's folder only when a Machine is adopted. The names of what belongs to a virtual machine are those that OpenShift's actuator
# gives, which are the module's too.
variable "adopt" {
  type = object({
    provider_id = string
    id          = string
  })
  description = "Which virtual machine is adopted: the Machine's provider ID, azure:// and an ID of Resource Manager, and the ID that a user has named. Without both, the cluster's virtual machine of the Machine's name."
}

locals {
  adopt_by_name = "${var.adopt.id}${var.adopt.provider_id}" == ""
  adopt_id = local.adopt_by_name ? "${local.compute}/virtualMachines/${var.machine.name}" : (
    var.adopt.id != "" ? var.adopt.id : trimprefix(var.adopt.provider_id, "azure://")
  )
  adopt_parts = try(regex("(?i)^/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft.Compute/virtualMachines/([^/]+)$", local.adopt_id), ["", "", ""])
  # Cloud providers write the resource group in small letters, and an import takes what the module writes.
  found_id = "${local.compute}/virtualMachines/${var.machine.name}"
  # One, read from the list, so that an adoption asks before it imports.
  found_ids  = [for machine in data.azurerm_resources.adopted.resources : local.found_id]
  found      = one([for machine in data.azurerm_resources.adopted.resources : machine if lower(machine.name) == lower(var.machine.name)])
  found_nic  = "${local.subscription}/resourceGroups/${var.provider_spec.resourceGroup}/providers/Microsoft.Network/networkInterfaces/${local.found.name}-nic"
  found_tags = try({ for name, value in local.found.tags : name => value }, {})
}

# The tags of a cluster have its name in theirs. Without any such tag the provider ID alone is proof, or that a user has named it.
data "azurerm_resources" "adopted" {
  type                = "Microsoft.Compute/virtualMachines"
  resource_group_name = var.provider_spec.resourceGroup
  name                = local.adopt_parts[2]

  lifecycle {
    precondition {
      condition     = local.adopt_parts[2] != ""
      error_message = "${jsonencode(local.adopt_id)} is not the ID of a virtual machine: name it as /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Compute/virtualMachines/NAME."
    }
    precondition {
      condition     = lower("/subscriptions/${local.adopt_parts[0]}/${local.adopt_parts[1]}") == lower("${local.subscription}/${var.provider_spec.resourceGroup}")
      error_message = "The virtual machine ${local.adopt_id} is in another subscription or resource group than the providerSpec's, ${local.subscription}/resourceGroups/${var.provider_spec.resourceGroup}."
    }
    precondition {
      condition     = lower(local.adopt_parts[2]) == lower(var.machine.name)
      error_message = "The virtual machine ${local.adopt_id} has not the name of the Machine, ${var.machine.name}, and cannot be renamed."
    }
    postcondition {
      condition     = length(self.resources) == 1
      error_message = "There is no virtual machine ${local.adopt_id} to adopt."
    }
    postcondition {
      condition = alltrue([for machine in self.resources :
        contains(keys(machine.tags), "kubernetes.io_cluster.${var.machine.cluster_id}") || !local.adopt_by_name && !anytrue([for name in keys(machine.tags) : startswith(name, "kubernetes.io_cluster.")])
      ])
      error_message = "The virtual machine ${local.adopt_id} belongs to the cluster ${join(", ", flatten([for machine in self.resources : [for name in keys(machine.tags) : trimprefix(name, "kubernetes.io_cluster.") if startswith(name, "kubernetes.io_cluster.")]]))}, and the Machine to the cluster ${var.machine.cluster_id}."
    }
  }
}

# A list of Resource Manager has no sizes.
data "azurerm_virtual_machine" "adopted" {
  name                = local.found.name
  resource_group_name = var.provider_spec.resourceGroup
}

import {
  for_each = toset([for id in local.found_ids : id if local.resource == "linux"])
  to       = azurerm_linux_virtual_machine.this[0]
  id       = each.value
}

import {
  for_each = toset([for id in local.found_ids : id if local.resource == "windows"])
  to       = azurerm_windows_virtual_machine.this[0]
  id       = each.value
}

import {
  for_each = toset([for id in local.found_ids : id if local.resource == "plain"])
  to       = azurerm_virtual_machine.this[0]
  id       = each.value
}

import {
  for_each = toset([for name in [local.public_ip] : "${local.own_network}/publicIPAddresses/${name}" if local.has_public_ip])
  to       = azurerm_public_ip.primary[0]
  id       = each.value
}

import {
  to = azurerm_network_interface.primary
  id = local.found_nic
}

import {
  for_each = toset(local.security_group_ids)
  to       = azurerm_network_interface_security_group_association.primary[0]
  id       = "${local.found_nic}|${each.value}"
}

import {
  for_each = local.application_security_group_ids
  to       = azurerm_network_interface_application_security_group_association.primary[each.key]
  id       = "${local.found_nic}|${each.value}"
}

import {
  for_each = local.pools
  to       = azurerm_network_interface_backend_address_pool_association.primary[each.key]
  id       = "${local.found_nic}/ipConfigurations/${each.value.configuration}|${each.value.id}"
}

import {
  for_each = local.data_disks
  to       = azurerm_managed_disk.data[each.key]
  id       = "${local.compute}/disks/${local.found.name}_${each.key}"
}

import {
  for_each = local.attached_disks
  to       = azurerm_virtual_machine_data_disk_attachment.data[each.key]
  id       = "${local.found_id}/dataDisks/${local.found.name}_${each.key}"
}

# A virtual machine is what it was made as, so that nothing else says that it differs.
check "virtual_machine" {
  assert {
    condition     = lower(local.found.location) == lower(var.provider_spec.location)
    error_message = "providerSpec.location: ${var.provider_spec.location} is requested, the virtual machine is in ${local.found.location} and stays there."
  }
  assert {
    condition     = data.azurerm_virtual_machine.adopted.power_state == "running"
    error_message = "The virtual machine is ${data.azurerm_virtual_machine.adopted.power_state}."
  }
  assert {
    condition     = alltrue([for name, value in var.provider_spec.tags : try(local.found_tags[name], null) == value])
    error_message = "providerSpec.tags: ${jsonencode(var.provider_spec.tags)} are requested, the virtual machine has ${jsonencode(local.found_tags)} and keeps them."
  }
}
