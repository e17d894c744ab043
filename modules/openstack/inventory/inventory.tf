# Linked into a run's folder only to list servers. Those of the control plane bear the cluster's ID as well, and no Machine's UID where the
# installer has made them.
data "openstack_compute_instances_v2" "inventory" {
  metadata = { openshiftClusterID = var.machine.cluster_id }
}

locals {
  inventory = [for server in data.openstack_compute_instances_v2.inventory.servers : jsondecode(server)]
}

output "inventory" {
  description = "The servers of the cluster."
  value = [for server in local.inventory : {
    provider_id  = "openstack:///${server.id}"
    name         = server.name
    created      = server.created
    machine_uid  = try(server.metadata["machine-iac.io_machine-uid"], "")
    installation = try(server.metadata["machine-iac.io_installation"], "")
  }]
}
