# Runs with the files of adopt/ beside the module's. The engine cannot mock an import, so these are the virtual machines that are refused.
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
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
  adopt = {
    provider_id = "nutanix://4237a8c4-0000-4000-8000-000000000001"
    id          = ""
  }
}

override_data {
  target = data.nutanix_search.image
  values = { entities = ["{\"uuid\":\"ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c\",\"name\":\"demo-x7k2p-rhcos\"}"] }
}

run "no_machine_is_not_adopted" {
  command = plan
  override_data {
    target = data.nutanix_search.adopted
    values = { entities = [] }
  }

  expect_failures = [data.nutanix_search.adopted]
}

run "another_cluster_s_machine_is_not_adopted" {
  command = plan
  override_data {
    target = data.nutanix_search.adopted
    values = { entities = ["{\"uuid\":\"4237a8c4-0000-4000-8000-000000000001\",\"name\":\"demo-x7k2p-worker-abcde\",\"description\":\"\",\"state\":\"COMPLETE\",\"categories\":{\"kubernetes-io-cluster-other\":\"owned\"},\"created\":\"2026-01-01T00:00:00Z\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"sockets\":4,\"vcpus_per_socket\":1,\"memory_mib\":16384}"] }
  }

  expect_failures = [data.nutanix_search.adopted]
}

run "a_machine_without_proof_is_not_adopted" {
  command = plan
  override_data {
    target = data.nutanix_search.adopted
    values = { entities = ["{\"uuid\":\"4237a8c4-0000-4000-8000-000000000001\",\"name\":\"other\",\"description\":\"\",\"state\":\"COMPLETE\",\"categories\":{},\"created\":\"2026-01-01T00:00:00Z\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"sockets\":4,\"vcpus_per_socket\":1,\"memory_mib\":16384}"] }
  }

  expect_failures = [data.nutanix_search.adopted]
}

run "what_is_no_uuid_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = "nutanix://4237a8c4"
      id          = ""
    }
  }

  expect_failures = [data.nutanix_search.adopted]
}
