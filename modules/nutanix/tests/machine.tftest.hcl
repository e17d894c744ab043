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

override_data {
  target = data.nutanix_search.image
  values = { entities = ["{\"uuid\":\"ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c\",\"name\":\"demo-x7k2p-rhcos\"}"] }
}

run "makes_the_worker_that_the_installer_asks_for" {
  command = plan

  override_data {
    target = data.nutanix_search.cluster_category
    values = { entities = ["{\"name\":\"kubernetes-io-cluster-demo-x7k2p\",\"value\":\"owned\"}"] }
  }

  override_data {
    target = data.nutanix_search.clusters
    values = { entities = ["{\"uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"name\":\"pe-1\",\"prism_central\":false}", "{\"uuid\":\"9a1e8a3e-0000-4b00-9b00-000000000001\",\"name\":\"pc-1\",\"prism_central\":true}"] }
  }

  assert {
    condition     = nutanix_virtual_machine.this.name == "demo-x7k2p-worker-abcde" && nutanix_virtual_machine.this.cluster_uuid == "0005b6f1-8f43-a0f2-02b7-3cecef193712"
    error_message = "It has the Machine's name, and is in the cluster that is asked for."
  }
  assert {
    condition     = strcontains(nutanix_virtual_machine.this.description, "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1")
    error_message = "An import shows the Machine's UID."
  }
  assert {
    condition     = [nutanix_virtual_machine.this.num_sockets, nutanix_virtual_machine.this.num_vcpus_per_socket, nutanix_virtual_machine.this.memory_size_mib] == [4, 1, 16384]
    error_message = "It has the size that is asked for."
  }
  assert {
    condition     = nutanix_virtual_machine.this.disk_list[0].data_source_reference == tomap({ kind = "image", uuid = "ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c" }) && nutanix_virtual_machine.this.disk_list[0].disk_size_mib == 122880 && length(nutanix_virtual_machine.this.disk_list) == 1
    error_message = "Its one disk is made of the image of the name."
  }
  assert {
    condition     = nutanix_virtual_machine.this.nic_list[*].subnet_uuid == tolist(["c7938dc6-7659-453e-a688-e26020c68e43"])
    error_message = "It has one interface."
  }
  assert {
    condition     = [for one in nutanix_virtual_machine.this.categories : "${one.name}=${one.value}"] == ["kubernetes-io-cluster-demo-x7k2p=owned"]
    error_message = "The installer removes it with the cluster."
  }
  assert {
    condition     = jsondecode(base64decode(nonsensitive(nutanix_virtual_machine.this.guest_customization_cloud_init_user_data))) == jsondecode("{\"ignition\":{\"version\":\"3.2.0\"},\"storage\":{\"files\":[{\"path\":\"/etc/hostname\",\"overwrite\":true,\"mode\":420,\"contents\":{\"source\":\"data:,demo-x7k2p-worker-abcde\"}}]}}")
    error_message = "Ignition writes the Machine's name, which Nutanix does not say."
  }
  assert {
    condition     = nutanix_virtual_machine.this.guest_customization_is_overridable && nutanix_virtual_machine.this.hardware_clock_timezone == "UTC"
    error_message = "As OpenShift's provider asks for."
  }
  assert {
    condition     = nutanix_virtual_machine.this.boot_type == null || nutanix_virtual_machine.this.boot_type != "LEGACY"
    error_message = "Where nothing is said of booting, Prism Central decides."
  }
}

run "makes_the_control_plane_machine_that_the_installer_asks_for" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      failureDomain     = { name = "fd-1" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      project           = { type = "uuid", uuid = "5c6f5d2e-0000-4b00-9b00-000000000009" }
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "master-user-data" }
      vcpuSockets       = 8
      vcpusPerSocket    = 1
    }
    machine = {
      name       = "demo-x7k2p-master-0"
      namespace  = "openshift-machine-api"
      uid        = "0d4a5c2e-9c0b-4a0f-9d5e-6f5b2b0c1a77"
      cluster_id = "demo-x7k2p"
      labels     = { "machine.openshift.io/cluster-api-machine-role" = "master" }
    }
    cluster = {
      platform        = "Nutanix"
      failure_domains = [{ name = "fd-1", compute_cluster = "0005b6f1-8f43-a0f2-02b7-3cecef199999", networks = ["c7938dc6-7659-453e-a688-e26020c60001", "c7938dc6-7659-453e-a688-e26020c60002"] }]
    }
  }

  assert {
    condition     = nutanix_virtual_machine.this.cluster_uuid == "0005b6f1-8f43-a0f2-02b7-3cecef199999"
    error_message = "The failure domain's cluster counts."
  }
  assert {
    condition     = nutanix_virtual_machine.this.nic_list[*].subnet_uuid == tolist(["c7938dc6-7659-453e-a688-e26020c60001", "c7938dc6-7659-453e-a688-e26020c60002"])
    error_message = "The failure domain's subnets count."
  }
  assert {
    condition     = nutanix_virtual_machine.this.project_reference == tomap({ kind = "project", uuid = "5c6f5d2e-0000-4b00-9b00-000000000009" })
    error_message = "It is in the project."
  }
  assert {
    condition     = length(nutanix_virtual_machine.this.categories) == 0
    error_message = "Without the installer's category it is in none."
  }
}

run "takes_every_field" {
  command = plan

  variables {
    provider_spec = {
      bootType          = "SecureBoot"
      categories        = [{ key = "AppType", value = "a" }, { key = "Environment", value = "Prod" }]
      cluster           = { type = "name", name = "pe-1" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks = [
        { diskSize = "1Gi" },
        { diskSize = "1536Mi", deviceProperties = { deviceType = "Disk", adapterType = "SCSI", deviceIndex = 1 }, storageConfig = { diskMode = "Flash", storageContainer = { type = "uuid", uuid = "d2ec8b31-0000-4b00-9b00-000000000002" } } },
        { diskSize = "2Gi", deviceProperties = { deviceType = "CDRom", adapterType = "SATA", deviceIndex = 0 }, dataSource = { type = "name", name = "tools" }, storageConfig = { diskMode = "Standard" } },
        { diskSize = "3Gi", dataSource = { type = "uuid", uuid = "d2ec8b31-0000-4b00-9b00-000000000003" }, storageConfig = { diskMode = "Standard", storageContainer = { type = "uuid", uuid = "d2ec8b31-0000-4b00-9b00-000000000002" } } },
      ]
      gpus           = [{ type = "DeviceID", deviceID = 8757 }, { type = "Name", name = "Tesla T4" }]
      image          = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize     = "17.5G"
      project        = { type = "name", name = "team" }
      subnets        = [{ type = "name", name = "net" }, { type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize = "120Gi"
      userDataSecret = { name = "worker-user-data" }
      vcpuSockets    = 4
      vcpusPerSocket = 2
    }
  }

  override_data {
    target = data.nutanix_search.image
    values = { entities = ["{\"uuid\":\"ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c\",\"name\":\"any\"}"] }
  }

  override_data {
    target = data.nutanix_search.clusters
    values = { entities = ["{\"uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"name\":\"pe-1\",\"prism_central\":false}", "{\"uuid\":\"9a1e8a3e-0000-4b00-9b00-000000000001\",\"name\":\"pc-1\",\"prism_central\":true}"] }
  }

  override_data {
    target = data.nutanix_search.subnet
    values = { entities = ["{\"uuid\":\"c7938dc6-7659-453e-a688-e26020c68e44\",\"name\":\"net\"}"] }
  }

  override_data {
    target = data.nutanix_search.project
    values = { entities = ["{\"uuid\":\"5c6f5d2e-0000-4b00-9b00-000000000001\",\"name\":\"team\"}"] }
  }

  override_data {
    target = data.nutanix_search.gpus
    values = { entities = ["{\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"name\":\"Tesla T4\",\"device_id\":7864,\"mode\":\"PASSTHROUGH_COMPUTE\",\"vendor\":\"NVIDIA\"}", "{\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"name\":\"A40\",\"device_id\":8757,\"mode\":\"VIRTUAL\",\"vendor\":\"NVIDIA\"}"] }
  }

  assert {
    condition     = nutanix_virtual_machine.this.cluster_uuid == "0005b6f1-8f43-a0f2-02b7-3cecef193712"
    error_message = "The cluster is found by its name."
  }
  assert {
    condition     = nutanix_virtual_machine.this.nic_list[*].subnet_uuid == tolist(["c7938dc6-7659-453e-a688-e26020c68e44", "c7938dc6-7659-453e-a688-e26020c68e43"])
    error_message = "Subnets are found by their names, and keep their order."
  }
  assert {
    condition     = nutanix_virtual_machine.this.project_reference.uuid == "5c6f5d2e-0000-4b00-9b00-000000000001"
    error_message = "The project is found by its name."
  }
  assert {
    condition     = toset([for one in nutanix_virtual_machine.this.categories : "${one.name}=${one.value}"]) == toset(["AppType=a", "Environment=Prod"])
    error_message = "It is in the categories."
  }
  assert {
    condition     = jsonencode([for gpu in nutanix_virtual_machine.this.gpu_list : [gpu.vendor, gpu.mode, gpu.device_id]]) == jsonencode([["NVIDIA", "VIRTUAL", 8757], ["NVIDIA", "PASSTHROUGH_COMPUTE", 7864]])
    error_message = "GPUs are found by device ID and by name."
  }
  assert {
    condition     = [for disk in nutanix_virtual_machine.this.disk_list : disk.disk_size_mib] == [122880, 1024, 1536, 2048, 3072] && nutanix_virtual_machine.this.memory_size_mib == 16689
    error_message = "Disks follow the system's in their order; sizes are rounded down to MiB."
  }
  assert {
    condition     = nutanix_virtual_machine.this.disk_list[2].device_properties[0].device_type == "DISK" && nutanix_virtual_machine.this.disk_list[2].device_properties[0].disk_address == tomap({ adapter_type = "SCSI", device_index = "1" })
    error_message = "A disk is where it is asked for."
  }
  assert {
    condition     = nutanix_virtual_machine.this.disk_list[2].storage_config[0].flash_mode == "ON" && nutanix_virtual_machine.this.disk_list[2].storage_config[0].storage_container_reference[0].uuid == "d2ec8b31-0000-4b00-9b00-000000000002"
    error_message = "Flash mode is on, in the storage container."
  }
  assert {
    condition     = nutanix_virtual_machine.this.disk_list[3].device_properties[0].device_type == "CDROM" && nutanix_virtual_machine.this.disk_list[3].data_source_reference.uuid == "ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c"
    error_message = "A CD-ROM has its image."
  }
  assert {
    condition     = nutanix_virtual_machine.this.disk_list[4].data_source_reference.uuid == "d2ec8b31-0000-4b00-9b00-000000000003" && nutanix_virtual_machine.this.disk_list[4].storage_config[0].flash_mode == null
    error_message = "An image is taken by its UUID too."
  }
  assert {
    condition     = nutanix_virtual_machine.this.boot_type == "SECURE_BOOT" && data.nutanix_search.gpus[0].cluster_uuid == "0005b6f1-8f43-a0f2-02b7-3cecef193712"
    error_message = "It boots securely; GPUs are those of the cluster."
  }
}

run "boots_as_a_bios_does" {
  command = plan

  variables {
    provider_spec = {
      bootType          = "Legacy"
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

  assert {
    condition     = nutanix_virtual_machine.this.boot_type == "LEGACY" && nutanix_virtual_machine.this.boot_device_order_list == tolist(["CDROM", "DISK", "NETWORK"])
    error_message = "As OpenShift's provider asks for."
  }
}

run "boots_with_uefi" {
  command = plan

  variables {
    provider_spec = {
      bootType          = "UEFI"
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

  assert {
    condition     = nutanix_virtual_machine.this.boot_type == "UEFI"
    error_message = "UEFI is asked for."
  }
}

run "takes_the_subnet_of_its_own_cluster" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "name", name = "pe-1" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "uuid", uuid = "ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c" }
      memorySize        = "16Gi"
      subnets           = [{ type = "name", name = "net" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  override_data {
    target = data.nutanix_search.clusters
    values = { entities = ["{\"uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"name\":\"pe-1\",\"prism_central\":false}", "{\"uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193713\",\"name\":\"pe-2\",\"prism_central\":false}"] }
  }

  override_data {
    target = data.nutanix_search.subnet
    values = { entities = ["{\"uuid\":\"c7938dc6-7659-453e-a688-e26020c68e44\",\"name\":\"net\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193713\"}", "{\"uuid\":\"c7938dc6-7659-453e-a688-e26020c68e45\",\"name\":\"net\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\"}", "{\"uuid\":\"c7938dc6-7659-453e-a688-e26020c68e46\",\"name\":\"net\",\"cluster_uuid\":\"\"}"] }
  }

  assert {
    condition     = nutanix_virtual_machine.this.nic_list[*].subnet_uuid == tolist(["c7938dc6-7659-453e-a688-e26020c68e45"])
    error_message = "Of several subnets of one name, the one on the Machine's cluster is used."
  }
}

run "guesses_no_subnet" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "uuid", uuid = "ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c" }
      memorySize        = "16Gi"
      subnets           = [{ type = "name", name = "away" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  override_data {
    target = data.nutanix_search.subnet
    values = { entities = ["{\"uuid\":\"c7938dc6-7659-453e-a688-e26020c68e46\",\"name\":\"away\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193713\"}", "{\"uuid\":\"c7938dc6-7659-453e-a688-e26020c68e47\",\"name\":\"away\",\"cluster_uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193714\"}"] }
  }

  assert {
    condition     = nutanix_virtual_machine.this.nic_list[0].subnet_uuid == "several subnets are called away, and not exactly one of them is on the cluster"
    error_message = "The create fails if none of several subnets is on the cluster."
  }
}

run "writes_what_is_missing_in_its_place" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "name", name = "pe-1" }
      credentialsSecret = { name = "nutanix-credentials" }
      gpus              = [{ type = "Name", name = "T4" }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      project           = { type = "name", name = "team" }
      subnets           = [{ type = "name", name = "net" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  override_data {
    target = data.nutanix_search.image
    values = { entities = [] }
  }

  override_data {
    target = data.nutanix_search.clusters
    values = { entities = [] }
  }

  override_data {
    target = data.nutanix_search.subnet
    values = { entities = ["{\"uuid\":\"c7938dc6-7659-453e-a688-e26020c68e44\",\"name\":\"net\"}", "{\"uuid\":\"c7938dc6-7659-453e-a688-e26020c68e45\",\"name\":\"net\"}"] }
  }

  override_data {
    target = data.nutanix_search.project
    values = { entities = [] }
  }

  override_data {
    target = data.nutanix_search.gpus
    values = { entities = [] }
  }

  assert {
    condition     = nutanix_virtual_machine.this.cluster_uuid == "no cluster is called pe-1" && nutanix_virtual_machine.this.project_reference.uuid == "no project is called team"
    error_message = "The provider repeats it when it refuses the create."
  }
  assert {
    condition     = nutanix_virtual_machine.this.nic_list[0].subnet_uuid == "several subnets are called net, and not exactly one of them is on the cluster" && nutanix_virtual_machine.this.disk_list[0].data_source_reference.uuid == "no image is called demo-x7k2p-rhcos"
    error_message = "Nobody guesses which of several is meant."
  }
  assert {
    condition     = nutanix_virtual_machine.this.gpu_list[0].vendor == "no unused GPU of the cluster is called T4"
    error_message = "A GPU may be free later."
  }
}

run "makes_nothing_in_a_failure_domain_that_is_not_there" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      failureDomain     = { name = "fd-2" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
    cluster = { platform = "Nutanix" }
  }

  assert {
    condition     = nutanix_virtual_machine.this.cluster_uuid == "the Infrastructure has no failure domain fd-2"
    error_message = "The provider repeats it when it refuses the create."
  }

  expect_failures = [check.ignored]
}

run "takes_the_last_value_of_a_category" {
  command = plan

  variables {
    provider_spec = {
      categories        = [{ key = "AppType", value = "a" }, { key = "AppType", value = "b" }]
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

  assert {
    condition     = [for one in nutanix_virtual_machine.this.categories : "${one.name}=${one.value}"] == ["AppType=b"]
    error_message = "A virtual machine has one value of a key."
  }

  expect_failures = [check.ignored]
}

run "keeps_the_files_of_ignition" {
  command = plan

  variables {
    user_data = "{\"ignition\":{\"version\":\"3.2.0\"},\"storage\":{\"disks\":[],\"files\":[{\"path\":\"/a\"}]}}"
  }

  assert {
    condition     = jsondecode(base64decode(nonsensitive(nutanix_virtual_machine.this.guest_customization_cloud_init_user_data))).storage.files[*].path == ["/a", "/etc/hostname"]
    error_message = "The hostname is one file more."
  }
  assert {
    condition     = jsondecode(base64decode(nonsensitive(nutanix_virtual_machine.this.guest_customization_cloud_init_user_data))).storage.disks == []
    error_message = "The rest stays."
  }
}

run "leaves_the_name_of_windows_to_its_operator" {
  command = plan

  variables {
    machine = {
      name       = "winworker-abcde"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo-x7k2p"
      labels     = { "machine.openshift.io/os-id" = "Windows" }
    }
    user_data = "<powershell>Get-Date</powershell>"
  }

  assert {
    condition     = base64decode(nonsensitive(nutanix_virtual_machine.this.guest_customization_cloud_init_user_data)) == "<powershell>Get-Date</powershell>"
    error_message = "It is passed as it is."
  }
}

run "passes_user_data_that_is_no_ignition_configuration" {
  command = plan

  variables {
    user_data = "#cloud-config\n"
  }

  assert {
    condition     = base64decode(nonsensitive(nutanix_virtual_machine.this.guest_customization_cloud_init_user_data)) == "#cloud-config\n"
    error_message = "It is passed as it is."
  }
}
