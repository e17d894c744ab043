# Linked into a run's folder only to list domains. Libvirt knows no clusters: a domain is listed where its description names the cluster, as this
# module writes it. When a domain was made is not known.
data "libvirt_domains" "inventory" {}

locals {
  inventory = [for domain in data.libvirt_domains.inventory.domains : jsondecode(domain)]
}

output "inventory" {
  description = "The domains that were made for Machines of the cluster."
  value = [for domain in local.inventory : {
    provider_id  = "libvirt:///${domain.uuid}"
    name         = domain.name
    created      = ""
    machine_uid  = try(regex("^Machine [^ ]+ ([0-9a-f-]+) ", domain.description)[0], "")
    installation = try(regex("^Machine [^ ]+ [0-9a-f-]+ of the installation ([^ ]+) ", domain.description)[0], "")
  } if endswith(domain.description, " of the cluster ${var.machine.cluster_id}")]
}
