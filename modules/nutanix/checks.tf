# What OpenShift's provider takes and does not use. Nothing here is refused.
check "ignored" {
  assert {
    condition     = length(distinct(var.provider_spec.categories[*].key)) == length(var.provider_spec.categories)
    error_message = "providerSpec.categories: a virtual machine has one value of a key, so the last of several counts."
  }
  assert {
    condition     = try(var.provider_spec.failureDomain.name, "") == "" || var.cluster.platform != "Nutanix" || contains(var.cluster.failure_domains[*].name, try(var.provider_spec.failureDomain.name, ""))
    error_message = "providerSpec.failureDomain: ${try(var.provider_spec.failureDomain.name, "")} is no failure domain of the Infrastructure, and nothing is made until it is."
  }
}
