# Where the virtual machine is, in the cluster's words: the failure domain that the workspace is of.
locals {
  # The installer may write a slash twice.
  workspace_pool = "/${join("/", compact(split("/", var.provider_spec.workspace.resourcePool)))}"

  # Zones that are groups of hosts differ in the group of virtual machines only.
  failure_domains = [
    for domain in var.cluster.failure_domains : domain
    if domain.server == var.provider_spec.workspace.server && domain.datacenter == var.provider_spec.workspace.datacenter
    && startswith("${local.workspace_pool}/", "${coalesce(domain.compute_cluster, "-")}/")
    && coalesce(domain.vm_group, "-") == coalesce(var.provider_spec.workspace.vmGroup, "-")
  ]
  of_pool      = [for domain in local.failure_domains : domain if "/${join("/", compact(split("/", coalesce(domain.resource_pool, "-"))))}" == local.workspace_pool]
  of_datastore = [for domain in local.failure_domains : domain if domain.datastore == var.provider_spec.workspace.datastore]

  # The first of these that leaves one; where none does, nothing is said.
  failure_domain = try([for domains in [local.failure_domains, local.of_pool, local.of_datastore] : domains[0] if length(domains) == 1][0], null)
}
