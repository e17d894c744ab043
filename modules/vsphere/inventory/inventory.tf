# Linked into a run's folder only to list virtual machines. They bear the cluster's tag, or are in a folder that has the cluster's name and have no
# tag of another cluster. The control plane is among them, and has no Machine's UID where the installer has made it.
data "vsphere_virtual_machines" "inventory" {
  datacenter = var.provider_spec.workspace.datacenter
  folder     = trimprefix(var.provider_spec.workspace.folder, "/${var.provider_spec.workspace.datacenter}/vm/")
}

locals {
  inventory = [for machine in data.vsphere_virtual_machines.inventory.virtual_machines : jsondecode(machine)]
}

output "inventory" {
  description = "The virtual machines of the cluster in the folder of the providerSpec."
  value = [for machine in local.inventory : {
    provider_id  = "vsphere://${machine.uuid}"
    name         = machine.name
    created      = machine.created
    machine_uid  = try(regex("^(?:Installation [^ ]+, )?Machine [^ ]+ ([0-9a-f-]+)$", machine.annotation)[0], "")
    installation = try(regex("^Installation ([^ ]+), Machine ", machine.annotation)[0], "")
    } if !machine.template && (
    contains(values(machine.tags), "openshift-${var.machine.cluster_id}/${var.machine.cluster_id}")
    || basename(var.provider_spec.workspace.folder) == var.machine.cluster_id && !anytrue([for tag in values(machine.tags) : startswith(tag, "openshift-")])
  )]
}
