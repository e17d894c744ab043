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
  mock_data "vsphere_snapshot" {
    defaults = {
      snapshot_id = "snapshot-7"
    }
  }
  mock_data "vsphere_workspace" {
    defaults = {
      network_ids = ["network-7"]
      tag_ids     = ["urn:vmomi:InventoryServiceTag:0f0e0d0c-49f5-4667-b38c-b97e09dc9578:GLOBAL"]
    }
  }
  mock_resource "vsphere_virtual_machine" {
    defaults = {
      uuid               = "4211cf20-9d07-0a4e-51d8-4d2b2ad2b8cf"
      moid               = "vm-42"
      guest_ip_addresses = ["192.168.1.20", "fe80::250:56ff:fe91:1"]
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
}

run "records_what_it_was_made_of" {
  assert {
    condition     = output.recorded.template.id == "4211b8b2-0b41-5a0d-9a2f-7d2b8bd61f7e" && output.recorded.disk.size == 16 && length(output.recorded.network_ids) == 1
    error_message = "What was read by name is recorded with the virtual machine."
  }
}

run "reads_nothing_by_name_once_it_is_there" {
  command = plan

  variables {
    cluster = { platform = "VSphere" }
    recorded = {
      resource_pool_id = "resgroup-1", datastore_id = "datastore-1", network_ids = ["network-1"], snapshot = ""
      tag_ids          = ["urn:vmomi:InventoryServiceTag:0f0e0d0c-49f5-4667-b38c-b97e09dc9578:GLOBAL"]
      template         = { id = "t", num_cpus = 2, num_cores_per_socket = 1, memory = 4096, guest_id = "rhel8_64Guest", firmware = "efi", scsi_type = "pvscsi" }
      disk             = { size = 16, thin_provisioned = true, eagerly_scrub = false }
    }
  }

  assert {
    condition = 0 == length(data.vsphere_datacenter.workspace) + length(data.vsphere_resource_pool.workspace) + length(data.vsphere_datastore.workspace) + (
      length(data.vsphere_workspace.openshift) + length(data.vsphere_network.device) + length(data.vsphere_virtual_machine.template) + length(data.vsphere_snapshot.template)
    )
    error_message = "The template and the rest may be gone."
  }
  assert {
    condition     = vsphere_virtual_machine.this.tags == toset(["urn:vmomi:InventoryServiceTag:0f0e0d0c-49f5-4667-b38c-b97e09dc9578:GLOBAL"])
    error_message = "It keeps the cluster's tag."
  }
}

run "changes_no_setting_of_one_that_is_there" {
  command = plan

  variables {
    recorded = {
      resource_pool_id = "resgroup-1", datastore_id = "datastore-1", network_ids = ["network-1"], snapshot = "", tag_ids = []
      template = {
        id       = "t", num_cpus = 2, num_cores_per_socket = 1, memory = 4096, guest_id = "rhel8_64Guest", firmware = "efi", scsi_type = "pvscsi"
        settings = { nested_hv_enabled = true, hv_mode = "hvOn", cpu_reservation = 1000, cpu_share_level = "low", efi_secure_boot_enabled = true }
      }
      disk = { size = 16, thin_provisioned = true, eagerly_scrub = false }
    }
  }

  assert {
    condition     = alltrue([for name in ["nested_hv_enabled", "hv_mode", "cpu_reservation", "cpu_share_level", "efi_secure_boot_enabled"] : vsphere_virtual_machine.this[name] == null])
    error_message = "An existing virtual machine keeps its settings: most changes would restart it."
  }
}
