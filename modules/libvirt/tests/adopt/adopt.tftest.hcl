# Runs with the files of adopt/ beside the module's. The engine cannot mock an import, so this is what is refused.
mock_provider "libvirt" {}

variables {
  machine = {
    name       = "demo-x7k2p-worker-0-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = {}
  }
  # As OpenShift's installer writes it.
  provider_spec = {
    domainMemory             = 7168
    domainVcpu               = 4
    ignKey                   = ""
    ignition                 = { userDataSecret = "worker-user-data" }
    cloudInit                = null
    volume                   = { poolName = "demo-x7k2p", baseVolumeID = "demo-x7k2p-base", volumeName = "" }
    networkInterfaceName     = "demo-x7k2p"
    networkInterfaceHostname = ""
    networkInterfaceAddress  = "192.168.126.0/24"
    networkUUID              = ""
    autostart                = false
    uri                      = "qemu+tcp://192.168.122.1/system"
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\",\"config\":{\"merge\":[{\"source\":\"https://api-int.demo.example.com:22623/config/worker\"}]}}}"
  adopt = {
    provider_id = "libvirt:///4237a8c4-0000-0000-0000-000000000000"
    id          = ""
  }
}

run "no_domain_is_not_adopted" {
  command = plan

  override_data {
    target = data.libvirt_domains.adopted
    values = { domains = [] }
  }
  expect_failures = [data.libvirt_domains.adopted]
}

run "another_cluster_s_domain_is_not_adopted" {
  command = plan

  override_data {
    target = data.libvirt_domains.adopted
    values = { domains = ["{\"name\":\"demo-x7k2p-worker-0-abcde\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"description\":\"Machine a/b 5e0a of the cluster other\",\"memory_mib\":7168,\"vcpus\":4,\"volumes\":[\"/pool/a\"]}"] }
  }
  expect_failures = [data.libvirt_domains.adopted]
}

run "a_domain_of_another_name_is_not_adopted" {
  command = plan

  override_data {
    target = data.libvirt_domains.adopted
    values = { domains = ["{\"name\":\"other\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"description\":\"\",\"memory_mib\":7168,\"vcpus\":4,\"volumes\":[\"/pool/a\"]}"] }
  }
  expect_failures = [data.libvirt_domains.adopted]
}

run "a_domain_of_two_volumes_is_not_adopted" {
  command = plan

  override_data {
    target = data.libvirt_domains.adopted
    values = { domains = ["{\"name\":\"demo-x7k2p-worker-0-abcde\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"description\":\"\",\"memory_mib\":7168,\"vcpus\":4,\"volumes\":[\"/pool/a\",\"/pool/b\"]}"] }
  }
  expect_failures = [data.libvirt_domains.adopted]
}
