mock_provider "vsphere" {
  mock_data "vsphere_virtual_machine" {
    defaults = {
      scsi_type               = "pvscsi"
      disks                   = [{ eagerly_scrub = false, label = "disk0", size = 16, thin_provisioned = true, unit_number = 0 }]
      network_interface_types = ["vmxnet3"]
    }
  }
}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  user_data = ""
}

run "warns_of_one_processor" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      userDataSecret    = { name = "worker-user-data" }
      numCPUs           = 1
      memoryMiB         = 8192
      diskGiB           = 120
    }
  }

  expect_failures = [check.processors]
}

run "warns_of_little_memory" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      userDataSecret    = { name = "worker-user-data" }
      numCPUs           = 4
      memoryMiB         = 2047
      diskGiB           = 120
    }
  }

  expect_failures = [check.memory]
}

run "warns_of_a_small_disk" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      userDataSecret    = { name = "worker-user-data" }
      numCPUs           = 4
      memoryMiB         = 8192
      diskGiB           = 119
    }
  }

  expect_failures = [check.disk]
}

run "warns_of_a_size_of_a_linked_clone" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      userDataSecret    = { name = "worker-user-data" }
      cloneMode         = "linkedClone"
      numCPUs           = 4
      memoryMiB         = 8192
      diskGiB           = 120
    }
  }

  expect_failures = [check.linked_clone]
}

run "warns_of_an_unknown_clone_mode" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      userDataSecret    = { name = "worker-user-data" }
      cloneMode         = "instantClone"
      numCPUs           = 4
      memoryMiB         = 8192
      diskGiB           = 120
    }
  }

  expect_failures = [check.clone_mode]
}

run "warns_of_a_linked_clone_without_its_snapshot" {
  command = plan

  override_data {
    target = data.vsphere_snapshot.template
    values = { snapshot_id = "" }
  }

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      cloneMode         = "linkedClone"
      snapshot          = "gone"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      userDataSecret    = { name = "worker-user-data" }
      numCPUs           = 4
      memoryMiB         = 8192
      diskGiB           = 120
    }
  }

  assert {
    condition     = vsphere_virtual_machine.this.clone[0].snapshot == "" && vsphere_virtual_machine.this.disk[0].size == 120
    error_message = "It is a full clone, whose disk has the size that is asked for."
  }

  expect_failures = [check.linked_clone, check.linked_clone_of_a_snapshot]
}

run "warns_of_a_snapshot_of_a_full_clone" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      userDataSecret    = { name = "worker-user-data" }
      snapshot          = "before"
      numCPUs           = 4
      memoryMiB         = 8192
      diskGiB           = 120
    }
  }

  expect_failures = [check.snapshot]
}

run "warns_of_a_workspace_without_places" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { server = "vcenter.example.com" }
      userDataSecret    = { name = "worker-user-data" }
      numCPUs           = 4
      memoryMiB         = 8192
      diskGiB           = 120
    }
  }

  expect_failures = [check.datacenter, check.datastore, check.resource_pool]
}
