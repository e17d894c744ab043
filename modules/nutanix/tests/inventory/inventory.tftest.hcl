# Runs with the files of inventory/ beside the module's.
mock_provider "nutanix" {
  mock_data "nutanix_search" {
    defaults = { entities = [] }
  }
}

variables {
  machine = {
    name       = "demo-x7k2p-worker-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = {}
  }
  # As OpenShift's installer writes it.
  provider_spec = {
    bootType          = ""
    categories        = null
    cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
    credentialsSecret = { name = "nutanix-credentials" }
    image             = { type = "name", name = "demo-x7k2p-rhcos" }
    memorySize        = "16Gi"
    project           = { type = "" }
    subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
    systemDiskSize    = "120Gi"
    userDataSecret    = { name = "worker-user-data" }
    vcpuSockets       = 4
    vcpusPerSocket    = 1
  }
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "lists_machines" {
  command = plan

  override_data {
    target = data.nutanix_search.image
    values = { entities = ["{\"uuid\":\"ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c\",\"name\":\"demo-x7k2p-rhcos\"}"] }
  }
  override_data {
    target = data.nutanix_search.inventory
    values = { entities = ["{\"uuid\":\"4237a8c4-0000-4000-8000-000000000005\",\"name\":\"e\",\"description\":\"Installation i, Machine openshift-machine-api/e 5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1\",\"state\":\"COMPLETE\",\"categories\":{\"kubernetes-io-cluster-demo-x7k2p\":\"owned\"},\"created\":\"2026-01-01T00:00:00Z\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"sockets\":4,\"vcpus_per_socket\":1,\"memory_mib\":16384}", "{\"uuid\":\"4237a8c4-0000-4000-8000-000000000001\",\"name\":\"a\",\"description\":\"Machine openshift-machine-api/a 5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1\",\"state\":\"COMPLETE\",\"categories\":{\"kubernetes-io-cluster-demo-x7k2p\":\"owned\"},\"created\":\"2026-01-01T00:00:00Z\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"sockets\":4,\"vcpus_per_socket\":1,\"memory_mib\":16384}", "{\"uuid\":\"4237a8c4-0000-4000-8000-000000000002\",\"name\":\"b\",\"description\":\"\",\"state\":\"COMPLETE\",\"categories\":{\"kubernetes-io-cluster-demo-x7k2p\":\"owned\"},\"created\":\"2026-01-01T00:00:00Z\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"sockets\":4,\"vcpus_per_socket\":1,\"memory_mib\":16384}", "{\"uuid\":\"4237a8c4-0000-4000-8000-000000000003\",\"name\":\"c\",\"description\":\"\",\"state\":\"COMPLETE\",\"categories\":{\"kubernetes-io-cluster-other\":\"owned\"},\"created\":\"2026-01-01T00:00:00Z\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"sockets\":4,\"vcpus_per_socket\":1,\"memory_mib\":16384}", "{\"uuid\":\"4237a8c4-0000-4000-8000-000000000004\",\"name\":\"d\",\"description\":\"\",\"state\":\"COMPLETE\",\"categories\":{},\"created\":\"2026-01-01T00:00:00Z\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"sockets\":4,\"vcpus_per_socket\":1,\"memory_mib\":16384}"] }
  }

  assert {
    condition = output.inventory == [
      { provider_id = "nutanix://4237a8c4-0000-4000-8000-000000000005", name = "e", created = "2026-01-01T00:00:00Z", machine_uid = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1", installation = "i" },
      { provider_id = "nutanix://4237a8c4-0000-4000-8000-000000000001", name = "a", created = "2026-01-01T00:00:00Z", machine_uid = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1", installation = "" },
      { provider_id = "nutanix://4237a8c4-0000-4000-8000-000000000002", name = "b", created = "2026-01-01T00:00:00Z", machine_uid = "", installation = "" },
    ]
    error_message = "Those of other clusters, and of none, are left out."
  }
  assert {
    condition     = nutanix_virtual_machine.this.description == "Installation c0ffee00-0000-4000-8000-000000000001, Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid}"
    error_message = "What is made bears the UID of the installation."
  }
}
