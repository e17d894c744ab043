# Linked into a run's folder only to list Nodes. One without the label may be another cluster's, and is left out.
data "kubectl_objects" "inventory" {
  api_version    = "v1"
  resource       = "nodes"
  label_selector = "machine-iac.io/cluster-id=${var.machine.cluster_id}"
}

locals {
  inventory = [for node in data.kubectl_objects.inventory.objects : jsondecode(node)]
}

output "inventory" {
  description = "The simulated Nodes of the cluster."
  value = [for node in local.inventory : {
    provider_id  = node.spec.providerID
    name         = node.metadata.name
    created      = node.metadata.creationTimestamp
    machine_uid  = try(node.metadata.labels["machine-iac.io/machine-uid"], "")
    installation = try(node.metadata.labels["machine-iac.io/installation"], "")
  } if startswith(try(node.spec.providerID, ""), "kubemark://")]
}
