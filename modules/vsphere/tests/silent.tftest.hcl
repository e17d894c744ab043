# A virtual machine that is off.
mock_provider "vsphere" {
  mock_data "vsphere_virtual_machine" {
    defaults = {
      scsi_type               = "pvscsi"
      disks                   = [{ eagerly_scrub = false, label = "disk0", size = 16, thin_provisioned = true, unit_number = 0 }]
      network_interface_types = ["vmxnet3"]
    }
  }
  mock_resource "vsphere_virtual_machine" {
    defaults = {
      guest_ip_addresses = []
      power_state        = "poweredOff"
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
  user_data = ""
}

run "says_that_it_is_off" {
  assert {
    condition     = output.instance_state == "poweredOff"
    error_message = "The power state is vCenter's."
  }
  assert {
    condition     = join(" ", output.addresses[*].type) == "InternalDNS Hostname"
    error_message = "The names are known, addresses are not."
  }
}
