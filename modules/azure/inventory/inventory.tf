# Linked into a run's folder only to list virtual machines. Those of the control plane bear the cluster's tag as well, and no Machine's UID where
# the installer has made them. A list of Resource Manager does not say when they were made.
data "azurerm_resources" "inventory" {
  type          = "Microsoft.Compute/virtualMachines"
  required_tags = { "kubernetes.io_cluster.${var.machine.cluster_id}" = "owned" }
}

output "inventory" {
  description = "The virtual machines of the cluster."
  value = [for machine in data.azurerm_resources.inventory.resources : {
    provider_id  = "azure://${replace(machine.id, "resourceGroups/${machine.resource_group_name}/", "resourceGroups/${lower(machine.resource_group_name)}/")}"
    name         = machine.name
    created      = ""
    machine_uid  = lookup(machine.tags, "machine-iac.io_machine-uid", "")
    installation = lookup(machine.tags, "machine-iac.io_installation", "")
  }]
}
