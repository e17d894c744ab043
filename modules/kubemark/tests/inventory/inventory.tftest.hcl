# Runs with the files of inventory/ beside the module's.
mock_provider "kubectl" {}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  provider_spec = {
    credentialsSecret = { name = "kubemark-credentials" }
  }
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = ""
}

run "lists_simulated_nodes" {
  command = plan

  override_data {
    target = data.kubectl_objects.inventory
    values = {
      objects = [
        "{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"machine-iac.io/machine-uid\":\"u\",\"machine-iac.io/installation\":\"i\"}},\"spec\":{\"providerID\":\"kubemark://u\"}}",
        "{\"metadata\":{\"name\":\"b\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"providerID\":\"aws:///z/i\"}}",
        "{\"metadata\":{\"name\":\"c\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{}}",
      ]
    }
  }
  assert {
    condition     = data.kubectl_objects.inventory.label_selector == "machine-iac.io/cluster-id=demo"
    error_message = "Nodes of other clusters are not asked for."
  }
  assert {
    condition     = output.inventory == [{ provider_id = "kubemark://u", name = "a", created = "2026-01-01T00:00:00Z", machine_uid = "u", installation = "i" }]
    error_message = "What is no simulated Node is left out."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).metadata.labels["machine-iac.io/installation"] == "c0ffee00-0000-4000-8000-000000000001"
    error_message = "What is made bears the UID of the installation."
  }
}
