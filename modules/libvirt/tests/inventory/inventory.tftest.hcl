# Runs with the files of inventory/ beside the module's.
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
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\",\"config\":{\"merge\":[{\"source\":\"https://api-int.demo.example.com:22623/config/worker\"}]}}}"
}

run "lists_domains" {
  command = plan

  override_data {
    target = data.libvirt_domains.inventory
    values = { domains = [
      "{\"name\":\"ours\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"description\":\"Machine openshift-machine-api/ours 5e0ad6a1-6f9f of the cluster demo-x7k2p\",\"memory_mib\":7168,\"vcpus\":4,\"volumes\":[\"/pool/a\"]}",
      "{\"name\":\"later\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000001\",\"description\":\"Machine openshift-machine-api/later 5e0ad6a1-6f9f of the installation i of the cluster demo-x7k2p\",\"memory_mib\":7168,\"vcpus\":4,\"volumes\":[\"/pool/a\"]}",
      "{\"name\":\"theirs\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"description\":\"Machine openshift-machine-api/theirs 5e0ad6a1-6f9f of the cluster other\",\"memory_mib\":7168,\"vcpus\":4,\"volumes\":[\"/pool/a\"]}",
      "{\"name\":\"nobodys\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"description\":\"\",\"memory_mib\":7168,\"vcpus\":4,\"volumes\":[\"/pool/a\"]}",
    ] }
  }
  assert {
    condition = output.inventory == [
      { provider_id = "libvirt:///4237a8c4-0000-0000-0000-000000000000", name = "ours", created = "", machine_uid = "5e0ad6a1-6f9f", installation = "" },
      { provider_id = "libvirt:///4237a8c4-0000-0000-0000-000000000001", name = "later", created = "", machine_uid = "5e0ad6a1-6f9f", installation = "i" },
    ]
    error_message = "Domains of other clusters, and those that name none, are left out."
  }
  assert {
    condition     = libvirt_domain.this.description == "Machine openshift-machine-api/demo-x7k2p-worker-0-abcde 5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1 of the installation c0ffee00-0000-4000-8000-000000000001 of the cluster demo-x7k2p"
    error_message = "What is made bears the UID of the installation."
  }
}
