# Runs with the files of inventory/ beside the module's.
mock_provider "vsphere" {
  mock_data "vsphere_virtual_machine" {
    defaults = {
      id                      = "4211b8b2-0b41-5a0d-9a2f-7d2b8bd61f7e"
      guest_id                = "rhel8_64Guest"
      scsi_type               = "pvscsi"
      network_interface_types = ["vmxnet3"]
      disks                   = [{ eagerly_scrub = false, label = "disk0", size = 16, thin_provisioned = true, unit_number = 0 }]
    }
  }
}

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
    credentialsSecret = { name = "vsphere-cloud-credentials" }
    userDataSecret    = { name = "worker-user-data" }
    diskGiB           = 120
    memoryMiB         = 16384
    numCPUs           = 4
    numCoresPerSocket = 4
    snapshot          = ""
    template          = "demo-x7k2p-rhcos"
    network           = { devices = [{ networkName = "VM Network" }] }
    workspace = {
      datacenter   = "DC0"
      datastore    = "/DC0/datastore/LocalDS_0"
      folder       = "/DC0/vm/demo-x7k2p"
      resourcePool = "/DC0/host/DC0_C0/Resources"
      server       = "vcenter.example.com"
    }
  }
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "lists_machines" {
  command = plan

  override_data {
    target = data.vsphere_virtual_machines.inventory
    values = { virtual_machines = [
      "{\"name\":\"tagged\",\"path\":\"/DC0/vm/x/tagged\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":false,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{\"urn:1\":\"openshift-demo-x7k2p/demo-x7k2p\"}}",
      "{\"name\":\"ours\",\"path\":\"/DC0/vm/x/ours\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"Machine openshift-machine-api/ours 5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":false,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{}}",
      "{\"name\":\"later\",\"path\":\"/DC0/vm/x/later\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"Installation i, Machine openshift-machine-api/later 5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b2\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":false,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{}}",
      "{\"name\":\"theirs\",\"path\":\"/DC0/vm/x/theirs\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":false,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{\"urn:2\":\"openshift-other/other\"}}",
      "{\"name\":\"template\",\"path\":\"/DC0/vm/x/template\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":true,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{}}",
    ] }
  }
  assert {
    condition     = data.vsphere_virtual_machines.inventory.folder == "demo-x7k2p"
    error_message = "The folder is that of the providerSpec."
  }
  assert {
    condition = [for machine in output.inventory : [machine.name, machine.machine_uid, machine.installation]] == [
      ["tagged", "", ""], ["ours", "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1", ""], ["later", "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b2", "i"],
    ]
    error_message = "Templates and virtual machines of other clusters are left out."
  }
  assert {
    condition     = vsphere_virtual_machine.this.annotation == "Installation c0ffee00-0000-4000-8000-000000000001, Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid}"
    error_message = "What is made bears the UID of the installation."
  }
}
