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
      power_state        = "poweredOn"
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

run "makes_what_the_installer_asks_for" {
  command = plan

  assert {
    condition     = vsphere_virtual_machine.this.wait_for_guest_net_timeout == 0
    error_message = "No run waits for the guest; its addresses are looked for later."
  }
  assert {
    condition     = vsphere_virtual_machine.this.name == "demo-x7k2p-worker-0-abcde" && vsphere_virtual_machine.this.folder == "demo-x7k2p"
    error_message = "The virtual machine has the Machine's name and is in the folder, given relative to the datacenter."
  }
  assert {
    condition     = strcontains(vsphere_virtual_machine.this.annotation, "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1")
    error_message = "An import shows the Machine's UID."
  }
  assert {
    condition     = [vsphere_virtual_machine.this.num_cpus, vsphere_virtual_machine.this.num_cores_per_socket, vsphere_virtual_machine.this.memory] == [4, 4, 16384]
    error_message = "It has the size that is asked for."
  }
  assert {
    condition     = [for disk in vsphere_virtual_machine.this.disk : [disk.label, disk.size, disk.thin_provisioned]] == [["disk0", 120, true]]
    error_message = "Its one disk has the size that is asked for, and the provisioning of the template."
  }
  assert {
    condition     = [for device in vsphere_virtual_machine.this.network_interface : device.adapter_type] == ["vmxnet3"]
    error_message = "It has one network device, of the template's kind."
  }
  assert {
    condition     = vsphere_virtual_machine.this.clone[0].template_uuid == "4211b8b2-0b41-5a0d-9a2f-7d2b8bd61f7e" && vsphere_virtual_machine.this.clone[0].linked_clone == false
    error_message = "It is a full clone of the template."
  }
  assert {
    condition     = vsphere_virtual_machine.this.clone[0].snapshot == "" && length(data.vsphere_snapshot.template) == 0 && vsphere_virtual_machine.this.vm_group == ""
    error_message = "It is of no snapshot and in no group."
  }
  assert {
    condition     = base64decode(nonsensitive(vsphere_virtual_machine.this.extra_config)["guestinfo.ignition.config.data"]) == "{\"ignition\":{\"version\":\"3.2.0\"}}"
    error_message = "Ignition finds the user data."
  }
  assert {
    condition     = nonsensitive(vsphere_virtual_machine.this.extra_config)["guestinfo.hostname"] == "demo-x7k2p-worker-0-abcde"
    error_message = "The guest takes the Machine's name."
  }
  assert {
    condition     = !contains(keys(nonsensitive(vsphere_virtual_machine.this.extra_config)), "guestinfo.afterburn.initrd.network-kargs")
    error_message = "Without addresses of its own the guest uses DHCP."
  }
}

run "makes_a_control_plane_machine_as_the_installer_asks_for" {
  command = plan

  variables {
    machine = {
      name       = "demo-x7k2p-master-0"
      namespace  = "openshift-machine-api"
      uid        = "0d4a5c2e-9c0b-4a0f-9d5e-6f5b2b0c1a77"
      cluster_id = "demo-x7k2p"
      labels     = { "machine.openshift.io/cluster-api-machine-role" = "master" }
    }
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      userDataSecret    = { name = "master-user-data" }
      diskGiB           = 120
      memoryMiB         = 16384
      numCPUs           = 4
      numCoresPerSocket = 4
      snapshot          = ""
      tagIDs            = null
      template          = "demo-x7k2p-rhcos-generated-region-generated-zone"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace = {
        datacenter   = "DC0"
        datastore    = "/DC0/datastore/LocalDS_0"
        folder       = "/DC0/vm/demo-x7k2p"
        resourcePool = "/DC0/host/DC0_C0//Resources"
        server       = "vcenter.example.com"
      }
    }
    user_data = "{\"ignition\":{\"version\":\"3.2.0\",\"config\":{\"merge\":[{\"source\":\"https://api-int.demo.example.com:22623/config/master\"}]}}}"
  }

  assert {
    condition     = vsphere_virtual_machine.this.name == "demo-x7k2p-master-0"
    error_message = "The virtual machine has the Machine's name."
  }
  assert {
    condition     = data.vsphere_virtual_machine.template[0].name == "demo-x7k2p-rhcos-generated-region-generated-zone"
    error_message = "It is made from the template that the installer uploaded."
  }
  assert {
    condition     = data.vsphere_resource_pool.workspace[0].name == "/DC0/host/DC0_C0//Resources" && data.vsphere_datastore.workspace[0].name == "/DC0/datastore/LocalDS_0"
    error_message = "Pool and datastore are looked up by their inventory paths, as they are written."
  }
  assert {
    condition     = strcontains(base64decode(nonsensitive(vsphere_virtual_machine.this.extra_config)["guestinfo.ignition.config.data"]), "config/master")
    error_message = "Ignition finds the control plane's user data."
  }
}

run "takes_what_is_left_out_from_the_template" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "demo-x7k2p-rhcos"
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace = {
        datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "/DC0/host/DC0_C0/Resources", server = "vcenter.example.com"
      }
    }
    user_data = ""
  }

  assert {
    condition     = vsphere_virtual_machine.this.disk[0].size == 16
    error_message = "The disk is as large as the template's."
  }
  assert {
    condition     = vsphere_virtual_machine.this.folder == ""
    error_message = "It lies in the datacenter's root folder."
  }
  assert {
    condition     = join(" ", keys(nonsensitive(vsphere_virtual_machine.this.extra_config))) == "guestinfo.hostname stealclock.enable"
    error_message = "Without user data nothing is passed to Ignition."
  }

  expect_failures = [check.processors, check.memory, check.disk]
}

run "takes_every_field" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      userDataSecret    = { name = "worker-user-data" }
      template          = "/DC0/vm/templates/rhcos"
      cloneMode         = "linkedClone"
      snapshot          = "4.20.1"
      numCPUs           = 8
      numCoresPerSocket = 2
      memoryMiB         = 32768
      diskGiB           = 200
      dataDisks = [
        { name = "images", sizeGiB = 100, provisioningMode = "Thin" },
        { name = "logs_1", sizeGiB = 10, provisioningMode = "EagerlyZeroed" },
        { name = "cache", sizeGiB = 20, provisioningMode = "Thick" },
        { name = "scratch", sizeGiB = 30 },
      ]
      network = {
        devices = [
          { networkName = "VM Network", gateway = "192.168.1.1", ipAddrs = ["192.168.1.100/24", "2001:db8::65/64"], nameservers = ["8.8.8.8", "2001:4860:4860::8888"] },
          { networkName = "storage", gateway = "2001:db8::1", ipAddrs = ["2001:db8::64/64"] },
        ]
      }
      tagIDs = ["urn:vmomi:InventoryServiceTag:5736bf56-49f5-4667-b38c-b97e09dc9578:GLOBAL"]
      workspace = {
        datacenter = "DC0", datastore = "LocalDS_0", folder = "/DC0/vm/a/b", resourcePool = "/DC0/host/DC0_C0/Resources", server = "vcenter.example.com",
        vmGroup    = "zone-a"
      }
    }
  }

  assert {
    condition     = vsphere_virtual_machine.this.clone[0].snapshot == "snapshot-7" && vsphere_virtual_machine.this.disk[0].size == 16
    error_message = "A linked clone of the snapshot keeps the template's disk as it is."
  }
  assert {
    condition     = data.vsphere_snapshot.template[0].name == "4.20.1" && data.vsphere_snapshot.template[0].virtual_machine_uuid == data.vsphere_virtual_machine.template[0].id
    error_message = "The snapshot is the template's one of the name."
  }
  assert {
    condition     = vsphere_virtual_machine.this.vm_group == "zone-a"
    error_message = "It is a member of the group."
  }
  assert {
    condition = jsonencode([for disk in vsphere_virtual_machine.this.disk : [disk.label, disk.unit_number, disk.size, disk.eagerly_scrub] if disk.label != "disk0"]) == jsonencode([
      ["data-images", 1, 100, false], ["data-logs_1", 2, 10, true], ["data-cache", 3, 20, false], ["data-scratch", 4, 30, false],
    ])
    error_message = "Data disks follow the first one, in their order."
  }
  assert {
    condition     = [vsphere_virtual_machine.this.num_cpus, vsphere_virtual_machine.this.num_cores_per_socket, vsphere_virtual_machine.this.memory] == [8, 2, 32768]
    error_message = "It has the size that is asked for."
  }
  assert {
    condition     = length(vsphere_virtual_machine.this.network_interface) == 2 && join(" and ", data.vsphere_network.device[*].name) == "VM Network and storage"
    error_message = "There is a network device for each, in their order."
  }
  assert {
    condition     = vsphere_virtual_machine.this.folder == "a/b" && data.vsphere_virtual_machine.template[0].name == "/DC0/vm/templates/rhcos"
    error_message = "Folders and templates may lie deep."
  }
  assert {
    condition     = nonsensitive(vsphere_virtual_machine.this.extra_config)["guestinfo.afterburn.initrd.network-kargs"] == "ip=192.168.1.100::192.168.1.1:255.255.255.0:::none ip=[2001:db8::65]:::64:::none nameserver=8.8.8.8 nameserver=[2001:4860:4860::8888] ip=[2001:db8::64]::[2001:db8::1]:64:::none"
    error_message = "Static addresses are passed to Afterburn as kernel arguments, each with a gateway of its own version."
  }
  assert {
    condition     = vsphere_virtual_machine.this.tags == toset(["urn:vmomi:InventoryServiceTag:5736bf56-49f5-4667-b38c-b97e09dc9578:GLOBAL"])
    error_message = "The tags are put on."
  }

  expect_failures = [check.linked_clone]
}

run "takes_as_many_disks_as_it_says" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      dataDisks         = [for i in range(29) : { name = "disk${i}", sizeGiB = 1 }]
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  assert {
    condition     = vsphere_virtual_machine.this.scsi_controller_count == 2 && length(distinct(vsphere_virtual_machine.this.disk[*].label)) == 30
    error_message = "A controller takes 15 disks, and no disk has the name of another, the first one's neither."
  }
}

run "finds_the_only_place_where_none_is_named" {
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
      workspace         = { server = "vcenter.example.com" }
    }
  }

  assert {
    condition     = data.vsphere_datacenter.workspace[0].name == null && data.vsphere_resource_pool.workspace[0].name == "*/Resources" && data.vsphere_datastore.workspace[0].name == "*"
    error_message = "These are what vCenter's client has for the default."
  }

  expect_failures = [check.datacenter, check.datastore, check.resource_pool]
}

run "waits_for_no_address_of_a_pool" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      numCPUs           = 4
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      network           = { devices = [{ networkName = "VM Network", addressesFromPools = [{ group = "ipam.example.com", resource = "IPPool", name = "a" }] }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  assert {
    condition     = !contains(keys(nonsensitive(vsphere_virtual_machine.this.extra_config)), "guestinfo.afterburn.initrd.network-kargs")
    error_message = "Addresses of pools are in ipAddrs, once they are there."
  }
}

run "puts_processors_into_one_socket_where_nothing_is_said" {
  command = plan

  variables {
    provider_spec = {
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 8192
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      template          = "rhcos"
      numCPUs           = 6
      network           = { devices = [{ networkName = "VM Network" }] }
      workspace         = { datacenter = "DC0", datastore = "LocalDS_0", resourcePool = "Resources", server = "vcenter.example.com" }
    }
  }

  assert {
    condition     = vsphere_virtual_machine.this.num_cpus == 6 && vsphere_virtual_machine.this.num_cores_per_socket == 6
    error_message = "One socket can always be."
  }
}

run "answers_the_outputs_of_the_contract" {
  assert {
    condition     = output.provider_id == "vsphere://4211cf20-9d07-0a4e-51d8-4d2b2ad2b8cf"
    error_message = "The providerID is the BIOS UUID, as the cloud provider writes it."
  }
  assert {
    condition     = output.instance_id == "4211cf20-9d07-0a4e-51d8-4d2b2ad2b8cf" && output.instance_state == "poweredOn"
    error_message = "The instance ID is its BIOS UUID."
  }
  assert {
    condition = jsonencode(output.addresses) == jsonencode([
      { type = "InternalIP", address = "192.168.1.20" },
      { type = "InternalIP", address = "fe80::250:56ff:fe91:1" },
      { type = "InternalDNS", address = "demo-x7k2p-worker-0-abcde" },
      { type = "Hostname", address = "demo-x7k2p-worker-0-abcde" },
    ])
    error_message = "Addresses are what the guest reports, and the name that its certificate is requested for."
  }
}

run "changes_tags_in_place" {
  command = plan

  variables {
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
      tagIDs = ["urn:vmomi:InventoryServiceTag:5736bf56-49f5-4667-b38c-b97e09dc9578:GLOBAL"]
    }
  }

  assert {
    condition     = length(vsphere_virtual_machine.this.tags) == 1
    error_message = "A tag is put on the virtual machine that is there."
  }
}

run "leaves_other_user_data_to_later_machines" {
  command = plan

  variables {
    user_data = "{\"ignition\":{\"version\":\"3.4.0\"}}"
  }

  assert {
    condition     = base64decode(nonsensitive(vsphere_virtual_machine.this.extra_config)["guestinfo.ignition.config.data"]) == "{\"ignition\":{\"version\":\"3.2.0\"}}"
    error_message = "A guest that has booted reads nothing of it."
  }
}

run "is_the_same_without_its_user_data" {
  command = plan

  variables {
    user_data = ""
  }

  assert {
    condition     = base64decode(nonsensitive(vsphere_virtual_machine.this.extra_config)["guestinfo.ignition.config.data"]) == "{\"ignition\":{\"version\":\"3.2.0\"}}"
    error_message = "What has booted reads nothing of it."
  }
}

run "refuses_what_would_need_another_virtual_machine" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "vsphere-cloud-credentials" }
      userDataSecret    = { name = "worker-user-data" }
      diskGiB           = 120
      memoryMiB         = 16384
      numCPUs           = 8
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
  }

  expect_failures = [terraform_data.made_with]
}

run "is_in_the_failure_domain_of_its_compute_cluster" {
  variables {
    cluster = {
      failure_domains = [
        { name = "a", region = "us-east", zone = "us-east-1a", server = "vcenter.example.com", datacenter = "DC0", compute_cluster = "/DC0/host/DC0_C0", datastore = "/DC0/datastore/LocalDS_0", resource_pool = null, host_group = null, vm_group = null },
        { name = "b", region = "us-east", zone = "us-east-2a", server = "vcenter.example.com", datacenter = "DC0", compute_cluster = "/DC0/host/DC0_C01", datastore = "/DC0/datastore/LocalDS_0", resource_pool = null, host_group = null, vm_group = null },
        { name = "c", region = "us-west", zone = "us-west-1a", server = "other.example.com", datacenter = "DC0", compute_cluster = "/DC0/host/DC0_C0", datastore = "/DC0/datastore/LocalDS_0", resource_pool = null, host_group = null, vm_group = null },
      ]
    }
  }

  assert {
    condition     = output.region == "us-east" && output.zone == "us-east-1a"
    error_message = "Region and zone are those of the failure domain."
  }
}

run "is_in_the_failure_domain_of_its_datastore" {
  variables {
    cluster = {
      failure_domains = [
        { name = "a", region = "us-east", zone = "us-east-1a", server = "vcenter.example.com", datacenter = "DC0", compute_cluster = "/DC0/host/DC0_C0", datastore = "/DC0/datastore/other", resource_pool = null, host_group = null, vm_group = null },
        { name = "b", region = "us-east", zone = "us-east-1b", server = "vcenter.example.com", datacenter = "DC0", compute_cluster = "/DC0/host/DC0_C0", datastore = "/DC0/datastore/LocalDS_0", resource_pool = null, host_group = null, vm_group = null },
      ]
    }
  }

  assert {
    condition     = output.region == "us-east" && output.zone == "us-east-1b"
    error_message = "Where two are of one compute cluster, the datastore decides."
  }
}

run "is_in_no_failure_domain_that_is_not_certain" {
  variables {
    cluster = {
      failure_domains = [
        { name = "a", region = "us-east", zone = "us-east-1a", server = "vcenter.example.com", datacenter = "DC0", compute_cluster = "/DC0/host/DC0_C0", datastore = "/DC0/datastore/other", resource_pool = null, host_group = null, vm_group = null },
        { name = "b", region = "us-east", zone = "us-east-1b", server = "vcenter.example.com", datacenter = "DC0", compute_cluster = "/DC0/host/DC0_C0", datastore = "/DC0/datastore/another", resource_pool = null, host_group = null, vm_group = null },
      ]
    }
  }

  assert {
    condition     = output.region == "" && output.zone == ""
    error_message = "Nothing is guessed."
  }
}

run "is_made_as_a_part_of_an_openshift_cluster" {
  command = plan

  variables {
    cluster = { platform = "VSphere" }
  }

  assert {
    condition     = data.vsphere_workspace.openshift[0].networks == tolist(["VM Network"]) && data.vsphere_workspace.openshift[0].cluster == "demo-x7k2p"
    error_message = "Networks and the tag are looked for by the names of the providerSpec and the cluster."
  }
  assert {
    condition     = length(data.vsphere_network.device) == 0
    error_message = "No network of the datacenter is looked for."
  }
  assert {
    condition     = join(" ", local.made_of.network_ids) == "network-7"
    error_message = "The network is one of the compute cluster."
  }
  assert {
    condition     = vsphere_virtual_machine.this.tags == toset(["urn:vmomi:InventoryServiceTag:0f0e0d0c-49f5-4667-b38c-b97e09dc9578:GLOBAL"])
    error_message = "It has the tag of the cluster."
  }
}
