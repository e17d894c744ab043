# What the Machine API warns of. Nothing is refused here.

check "service_account" {
  assert {
    condition     = length(var.provider_spec.serviceAccounts) > 0
    error_message = "providerSpec.serviceAccounts: no service account provided: nodes may be unable to join the cluster"
  }
}
