# Linked into a run's folder only to list virtual machines: those in the category that OpenShift's installer makes for the cluster. The control plane is
# among them, and has no Machine's UID where the installer has made it.
data "nutanix_search" "inventory" {
  kind = "virtual_machine"
}

locals {
  inventory = [for one in data.nutanix_search.inventory.entities : jsondecode(one)]
}

output "inventory" {
  description = "The virtual machines of the cluster."
  value = [for one in local.inventory : {
    provider_id  = "nutanix://${one.uuid}"
    name         = one.name
    created      = one.created
    machine_uid  = try(regex("^(?:Installation [^ ]+, )?Machine [^ ]+ ([0-9a-f-]+)$", one.description)[0], "")
    installation = try(regex("^Installation ([^ ]+), Machine ", one.description)[0], "")
  } if contains(try(keys(one.categories), []), "kubernetes-io-cluster-${var.machine.cluster_id}")]
}
