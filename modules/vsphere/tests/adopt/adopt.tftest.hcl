# Runs with the files of adopt/ beside the module's. The engine cannot mock an import, so this is what is refused.
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
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
  adopt = {
    provider_id = "vsphere://4237a8c4-0000-0000-0000-000000000000"
    id          = ""
  }
}

run "no_machine_is_not_adopted" {
  command = plan

  override_data {
    target = data.vsphere_virtual_machines.adopted
    values = { virtual_machines = [] }
  }

  expect_failures = [data.vsphere_virtual_machines.adopted]
}

run "another_cluster_s_machine_is_not_adopted" {
  command = plan

  override_data {
    target = data.vsphere_virtual_machines.adopted
    values = { virtual_machines = ["{\"name\":\"demo-x7k2p-worker-0-abcde\",\"path\":\"/DC0/vm/x/demo-x7k2p-worker-0-abcde\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":false,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{\"urn:1\":\"openshift-other/other\"}}"] }
  }

  expect_failures = [data.vsphere_virtual_machines.adopted]
}

run "a_machine_without_proof_is_not_adopted" {
  command = plan

  override_data {
    target = data.vsphere_virtual_machines.adopted
    values = { virtual_machines = ["{\"name\":\"other\",\"path\":\"/DC0/vm/x/other\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":false,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{}}"] }
  }

  expect_failures = [data.vsphere_virtual_machines.adopted]
}

run "a_template_is_not_adopted" {
  command = plan

  override_data {
    target = data.vsphere_virtual_machines.adopted
    values = { virtual_machines = ["{\"name\":\"demo-x7k2p-worker-0-abcde\",\"path\":\"/DC0/vm/x/demo-x7k2p-worker-0-abcde\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":true,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{}}"] }
  }

  expect_failures = [data.vsphere_virtual_machines.adopted]
}

run "what_is_no_uuid_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = "vsphere://vm-42"
      id          = ""
    }
  }


  expect_failures = [data.vsphere_virtual_machines.adopted]
}

run "no_machine_of_the_name_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = ""
      id          = ""
    }
  }

  override_data {
    target = data.vsphere_virtual_machines.adopted
    values = { virtual_machines = ["{\"name\":\"demo-x7k2p-worker-0-other\",\"path\":\"/DC0/vm/demo-x7k2p/demo-x7k2p-worker-0-other\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":false,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{\"urn:1\":\"openshift-demo-x7k2p/demo-x7k2p\"}}"] }
  }

  expect_failures = [data.vsphere_virtual_machines.adopted]
}

run "a_machine_of_the_name_alone_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = ""
      id          = ""
    }
  }

  override_data {
    target = data.vsphere_virtual_machines.adopted
    values = { virtual_machines = ["{\"name\":\"demo-x7k2p-worker-0-abcde\",\"path\":\"/DC0/vm/demo-x7k2p/demo-x7k2p-worker-0-abcde\",\"uuid\":\"4237a8c4-0000-0000-0000-000000000000\",\"annotation\":\"\",\"created\":\"2026-01-01T00:00:00Z\",\"template\":false,\"num_cpus\":4,\"memory_mib\":16384,\"tags\":{}}"] }
  }

  expect_failures = [data.vsphere_virtual_machines.adopted]
}
