# Settings that a clone keeps from its template. A mock sets only computed attributes of a data source, so the tests pass settings in var.recorded.
mock_provider "vsphere" {}

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
}

run "keeps_the_settings_of_its_template" {
  command = plan

  variables {
    recorded = {
      resource_pool_id = "resgroup-1", datastore_id = "datastore-1", network_ids = ["network-1"], snapshot = "", tag_ids = []
      template = {
        id = "t", num_cpus = 2, num_cores_per_socket = 1, memory = 4096, guest_id = "rhel8_64Guest", firmware = "efi", scsi_type = "pvscsi"
        settings = {
          alternate_guest_name                    = "CoreOS"
          boot_delay                              = 500
          boot_retry_delay                        = 20000
          boot_retry_enabled                      = true
          cpu_hot_add_enabled                     = true
          cpu_hot_remove_enabled                  = true
          cpu_limit                               = 8000
          cpu_performance_counters_enabled        = true
          cpu_reservation                         = 1000
          cpu_share_count                         = 3000
          cpu_share_level                         = "custom"
          efi_secure_boot_enabled                 = true
          enable_logging                          = true
          ept_rvi_mode                            = "on"
          hv_mode                                 = "hvOn"
          latency_sensitivity                     = "high"
          memory_hot_add_enabled                  = true
          memory_limit                            = 65536
          memory_reservation                      = 1024
          memory_share_count                      = 81920
          memory_share_level                      = "high"
          nested_hv_enabled                       = true
          run_tools_scripts_after_power_on        = false
          run_tools_scripts_after_resume          = false
          run_tools_scripts_before_guest_reboot   = true
          run_tools_scripts_before_guest_shutdown = false
          run_tools_scripts_before_guest_standby  = false
          scsi_bus_sharing                        = "virtualSharing"
          swap_placement_policy                   = "hostLocal"
          sync_time_with_host                     = true
        }
      }
      disk = { size = 16, thin_provisioned = true, eagerly_scrub = false }
    }
  }

  assert {
    condition     = alltrue([for name, value in var.recorded.template.settings : jsonencode(vsphere_virtual_machine.this[name]) == jsonencode(value) if name != "memory_share_count"])
    error_message = "A clone has the template's settings, apart from the number of shares, which follows from the level."
  }
}

run "reserves_all_its_memory_where_the_template_does" {
  command = plan

  variables {
    recorded = {
      resource_pool_id = "resgroup-1", datastore_id = "datastore-1", network_ids = ["network-1"], snapshot = "", tag_ids = []
      template = {
        id       = "t", num_cpus = 2, num_cores_per_socket = 1, memory = 4096, guest_id = "rhel8_64Guest", firmware = "efi", scsi_type = "pvscsi"
        settings = { memory_reservation = 4096, memory_limit = -1 }
      }
      disk = { size = 16, thin_provisioned = true, eagerly_scrub = false }
    }
  }

  assert {
    condition     = vsphere_virtual_machine.this.memory_reservation == 16384
    error_message = "If the template reserves all its memory, so does the clone."
  }
}

run "reserves_no_more_than_it_has" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 2048
      numCPUs           = 2
      template          = "demo-x7k2p-rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
    recorded = {
      resource_pool_id = "resgroup-1", datastore_id = "datastore-1", network_ids = ["network-1"], snapshot = "", tag_ids = []
      template = {
        id       = "t", num_cpus = 16, num_cores_per_socket = 1, memory = 8192, guest_id = "rhel8_64Guest", firmware = "efi", scsi_type = "pvscsi"
        settings = { memory_reservation = 4096, memory_limit = -1, cpu_reservation = 16000 }
      }
      disk = { size = 16, thin_provisioned = true, eagerly_scrub = false }
    }
  }

  assert {
    condition     = vsphere_virtual_machine.this.memory_reservation == 2048 && vsphere_virtual_machine.this.cpu_reservation == 2000
    error_message = "vCenter rejects a reservation above the memory, or above what the processors have."
  }
}

run "leaves_out_what_the_provider_does_not_take" {
  command = plan

  variables {
    recorded = {
      resource_pool_id = "resgroup-1", datastore_id = "datastore-1", network_ids = ["network-1"], snapshot = "", tag_ids = []
      template = {
        id = "t", num_cpus = 2, num_cores_per_socket = 1, memory = 4096, guest_id = "rhel8_64Guest", firmware = "efi", scsi_type = "pvscsi"
        settings = {
          hv_mode            = "", ept_rvi_mode = "", swap_placement_policy = "", scsi_bus_sharing = "unknown", latency_sensitivity = "custom", cpu_share_level = "",
          memory_share_level = "", alternate_guest_name = ""
        }
      }
      disk = { size = 16, thin_provisioned = true, eagerly_scrub = false }
    }
  }

  assert {
    condition     = alltrue([for name in keys(var.recorded.template.settings) : vsphere_virtual_machine.this[name] == null if var.recorded.template.settings[name] != null])
    error_message = "The provider's default replaces values that it would reject."
  }
}
