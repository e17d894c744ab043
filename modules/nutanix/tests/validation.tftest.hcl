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
}

run "refuses_a_machine_whose_name_is_no_hostname" {
  command = plan

  variables {
    machine = {
      name       = "a-name-of-more-than-sixty-three-characters-which-no-hostname-can-have"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo-x7k2p"
      labels     = {}
    }
  }

  expect_failures = [var.machine]
}

run "refuses_no_cluster" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_cluster_without_its_name" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "name" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_image" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_image_without_its_uuid" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "uuid", name = "a" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_subnets" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = []
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_too_many_subnets" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [for i in range(33) : { type = "name", name = "net${i}" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_subnet_of_another_type" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "UUID", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_subnet_without_its_name" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "name", name = "" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_subnet_twice" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "name", name = "a" }, { type = "name", name = "a" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_sockets" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_half_a_processor" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 0.5
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_little_memory" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "1Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_size_that_is_no_quantity" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120 GB"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_another_boot_type" {
  command = plan

  variables {
    provider_spec = {
      bootType          = "BIOS"
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_project_of_another_type" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      project           = { type = "id" }
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_project_without_its_name" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      project           = { type = "name" }
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_category_without_a_key" {
  command = plan

  variables {
    provider_spec = {
      categories        = [{ key = "", value = "a" }]
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_long_value_of_a_category" {
  command = plan

  variables {
    provider_spec = {
      categories        = [{ key = "a", value = "12345678901234567890123456789012345678901234567890123456789012345" }]
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_gpu_of_another_type" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      gpus              = [{ type = "uuid", name = "a" }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_gpu_without_its_device" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      gpus              = [{ type = "DeviceID", name = "a" }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_small_disk" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "1023Mi" }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_another_kind_of_device" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "1Gi", deviceProperties = { deviceType = "Floppy", adapterType = "SCSI" } }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_cdrom_of_scsi" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "1Gi", deviceProperties = { deviceType = "CDRom", adapterType = "SCSI" } }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_negative_index" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "1Gi", deviceProperties = { deviceType = "Disk", adapterType = "SCSI", deviceIndex = -1 } }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_another_disk_mode" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "1Gi", storageConfig = { diskMode = "Fast" } }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_storage_container_by_its_name" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "1Gi", storageConfig = { diskMode = "Standard", storageContainer = { type = "name", uuid = "d2ec8b31-0000-4b00-9b00-000000000002" } } }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_flash_without_a_storage_container" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "1Gi", storageConfig = { diskMode = "Flash" } }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_source_of_another_type" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "1Gi", dataSource = { type = "url", name = "a" } }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_source_without_its_name" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "1Gi", dataSource = { type = "name" } }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_user_data" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_credentials" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [var.provider_spec]
}
