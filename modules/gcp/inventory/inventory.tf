# Linked into a run's folder only to list instances. Compute Engine's data sources cannot list; Cloud Asset Inventory has every instance of the
# project, some minutes late.
data "google_cloud_asset_search_all_resources" "inventory" {
  scope       = "projects/${var.provider_spec.projectID}"
  asset_types = ["compute.googleapis.com/Instance"]
  query       = "labels.kubernetes-io-cluster-${var.machine.cluster_id}=owned"
}

locals {
  # A name is //compute.googleapis.com/projects/PROJECT/zones/ZONE/instances/NAME.
  inventory_names = [for found in data.google_cloud_asset_search_all_resources.inventory.results : regex("/projects/([^/]+)/zones/([^/]+)/instances/([^/]+)$", found.name)]
}

output "inventory" {
  description = "The instances of the cluster."
  value = [for index, found in data.google_cloud_asset_search_all_resources.inventory.results : {
    provider_id  = format("gce://%s/%s/%s", local.inventory_names[index]...)
    name         = local.inventory_names[index][2]
    created      = found.create_time
    machine_uid  = lookup(found.labels, "machine-iac-io-machine-uid", "")
    installation = lookup(found.labels, "machine-iac-io-installation", "")
  } if lookup(found.labels, "kubernetes-io-cluster-${var.machine.cluster_id}", "") == "owned"]
}
