mock_provider "vsphere" {
  mock_data "vsphere_virtual_machine" {
    defaults = {
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

run "refuses_an_empty_template" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = ""
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_empty_server" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_folder_outside_of_the_datacenter" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com", folder = "/DC1/vm/demo" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_group_whose_name_is_too_long" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com", vmGroup = join("", [for i in range(81) : "a"]) }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_fraction_of_a_processor" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      numCPUs           = 1.5
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_negative_memory" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      memoryMiB         = -1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_sockets_of_different_sizes" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      numCPUs           = 6
      numCoresPerSocket = 4
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_network" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_networks_than_a_virtual_machine_takes" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [for i in range(11) : { networkName = "net-${i}" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_network_without_a_name" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_address_without_its_prefix" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network", ipAddrs = ["192.168.1.100"] }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_gateway_that_is_no_address" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network", gateway = "router.example.com", ipAddrs = ["192.168.1.100/24"] }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_name_server_that_is_no_address" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network", nameservers = ["8.8.8.8 rd.break"] }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_tags_than_ten" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      tagIDs            = [for i in range(11) : "urn:vmomi:InventoryServiceTag:5736bf56-49f5-4667-b38c-b97e09dc95${10 + i}:GLOBAL"]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_the_name_of_a_tag" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      tagIDs            = ["production"]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_disks_than_controllers_take" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      dataDisks         = [for i in range(30) : { name = "disk-${i}", sizeGiB = 1 }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_disks_of_one_name" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      dataDisks         = [{ name = "a", sizeGiB = 1 }, { name = "a", sizeGiB = 2 }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_whose_name_is_no_name" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      dataDisks         = [{ name = "-a", sizeGiB = 1 }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_beyond_the_largest" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      dataDisks         = [{ name = "a", sizeGiB = 16385 }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_provisioning" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      dataDisks         = [{ name = "a", sizeGiB = 1, provisioningMode = "Sparse" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_machine_whose_name_is_no_hostname" {
  command = plan

  variables {
    machine = {
      name       = join("", [for i in range(64) : "a"])
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = {}
    }
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  expect_failures = [var.machine]
}

run "refuses_no_user_data" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
      numCPUs           = 4
      memoryMiB         = 8192
      diskGiB           = 120
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_server_with_a_user" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com@elsewhere.example/sdk" }
    }
  }

  expect_failures = [var.provider_spec]
}
