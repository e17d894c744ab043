mock_provider "libvirt" {
  mock_resource "libvirt_volume" {
    defaults = {
      id = "/var/lib/libvirt/images/volume"
    }
  }
  mock_resource "libvirt_ignition" {
    defaults = {
      id = "/var/lib/libvirt/images/volume.ign;0991a8e8-7aea-4eb8-b9b4-c84673c4ce97"
    }
  }
  mock_resource "libvirt_domain" {
    defaults = {
      id = "a2261a57-b4dd-435e-a553-4f7a0ef64ba6"
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
    domainMemory             = 7168
    domainVcpu               = 4
    ignKey                   = ""
    ignition                 = { userDataSecret = "worker-user-data" }
    cloudInit                = null
    volume                   = { poolName = "demo-x7k2p", baseVolumeID = "demo-x7k2p-base", volumeName = "" }
    networkInterfaceName     = "demo-x7k2p"
    networkInterfaceHostname = ""
    networkInterfaceAddress  = "192.168.126.0/24"
    networkUUID              = ""
    autostart                = false
    uri                      = "qemu+tcp://192.168.122.1/system"
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\",\"config\":{\"merge\":[{\"source\":\"https://api-int.demo.example.com:22623/config/worker\"}]}}}"
}

run "makes_what_the_installer_asks_for" {
  command = plan

  assert {
    condition     = libvirt_domain.this.name == "demo-x7k2p-worker-0-abcde" && libvirt_domain.this.running
    error_message = "The domain has the Machine's name, and runs."
  }
  assert {
    condition     = libvirt_domain.this.description == "Machine openshift-machine-api/demo-x7k2p-worker-0-abcde 5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1 of the cluster demo-x7k2p"
    error_message = "An import shows the Machine's UID."
  }
  assert {
    condition     = [libvirt_domain.this.memory, libvirt_domain.this.vcpu] == [7168, 4] && libvirt_domain.this.autostart == false
    error_message = "It has the size that is asked for, and does not start with its host."
  }
  assert {
    condition     = libvirt_domain.this.cpu[0].mode == "maximum"
    error_message = "Its processor is the host's, and one that can be emulated where there is no KVM."
  }
  assert {
    condition     = libvirt_volume.root.base_volume_name == "demo-x7k2p-base" && libvirt_volume.root.base_volume_id == null && libvirt_volume.root.pool == "demo-x7k2p"
    error_message = "Its volume is made from the base volume, which is found in the pool by its name."
  }
  assert {
    condition     = libvirt_volume.root.name == "demo-x7k2p-worker-0-abcde-5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    error_message = "No other Machine's volume can have the name, not even that of one that had this Machine's name."
  }
  assert {
    condition     = libvirt_domain.this.network_interface[0].network_name == "demo-x7k2p" && libvirt_domain.this.network_interface[0].wait_for_lease
    error_message = "It is in the network, and the create waits for an address."
  }
  assert {
    condition     = libvirt_domain.this.network_interface[0].mac == "52:54:c0:2a:1e:74"
    error_message = "Its hardware address is made from the Machine's UID."
  }
  assert {
    condition     = jsondecode(nonsensitive(libvirt_ignition.user_data[0].content)).ignition.config.merge[0].source == "https://api-int.demo.example.com:22623/config/worker"
    error_message = "Ignition finds the user data."
  }
  assert {
    condition     = jsonencode(jsondecode(nonsensitive(libvirt_ignition.user_data[0].content)).storage.files) == jsonencode([{ contents = { source = "data:,demo-x7k2p-worker-0-abcde" }, mode = 420, overwrite = true, path = "/etc/hostname" }])
    error_message = "Ignition writes the hostname."
  }
}

run "takes_every_field" {
  command = plan

  variables {
    provider_spec = {
      domainMemory            = 16384
      domainVcpu              = 8
      ignKey                  = "/var/lib/libvirt/images/worker.ign"
      ignition                = null
      cloudInit               = { userDataSecret = "", sshAccess = false }
      volume                  = { poolName = "default", baseVolumeID = "/var/lib/libvirt/images/rhcos.qcow2", volumeName = "", volumeSize = "32Gi" }
      networkUUID             = "0d9f0f4f-93a9-4b37-a9cc-2a1f9e7d7a11"
      networkInterfaceAddress = "fd00:126::/64"
      autostart               = true
      uri                     = "qemu+ssh://core@[fd00:122::1]:22/system?keyfile=/etc/libvirt-ssh/id&knownhosts=/etc/libvirt-ssh/known_hosts"
    }
    user_data = ""
  }

  assert {
    condition     = libvirt_domain.this.coreos_ignition == "/var/lib/libvirt/images/worker.ign;" && length(libvirt_ignition.user_data) == 0
    error_message = "The configuration that lies on the host is used, and none is made."
  }
  assert {
    condition     = libvirt_volume.root.base_volume_id == "/var/lib/libvirt/images/rhcos.qcow2" && libvirt_volume.root.base_volume_name == null
    error_message = "A base volume that is given by its path is found by it."
  }
  assert {
    condition     = libvirt_volume.root.size == 34359738368
    error_message = "The volume has the size that is asked for."
  }
  assert {
    condition     = libvirt_domain.this.network_interface[0].network_id == "0d9f0f4f-93a9-4b37-a9cc-2a1f9e7d7a11"
    error_message = "The network is found by its UUID."
  }
  assert {
    condition     = libvirt_domain.this.autostart
    error_message = "The domain starts with its host."
  }
}

run "reads_a_size_as_kubernetes_does" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base", volumeSize = "1.5G" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  assert {
    condition     = libvirt_volume.root.size == 1500000000
    error_message = "A size may be a fraction, with a decimal unit."
  }
  assert {
    condition     = libvirt_domain.this.network_interface[0].wait_for_lease == false
    error_message = "Where libvirt gives no addresses the create waits for none."
  }
}

run "reads_a_size_without_a_unit" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base", volumeSize = 34359738368 }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  assert {
    condition     = libvirt_volume.root.size == 34359738368
    error_message = "A number is one of bytes."
  }
}

run "writes_the_hostname_for_older_ignition" {
  command = plan

  variables {
    user_data = "{\"ignition\":{\"version\":\"2.2.0\"},\"storage\":{\"files\":[{\"filesystem\":\"root\",\"path\":\"/etc/motd\"}],\"disks\":[]}}"
  }

  assert {
    condition = jsonencode(jsondecode(nonsensitive(libvirt_ignition.user_data[0].content)).storage) == jsonencode({
      disks = []
      files = [
        { filesystem = "root", path = "/etc/motd" },
        { contents = { source = "data:,demo-x7k2p-worker-0-abcde" }, filesystem = "root", mode = 420, path = "/etc/hostname" },
      ]
    })
    error_message = "The file is added to those of the user data, as version 2 names it."
  }
}

run "leaves_a_hostname_of_the_user_data_alone" {
  command = plan

  variables {
    user_data = "{\"ignition\":{\"version\":\"3.2.0\"},\"storage\":{\"files\":[{\"path\":\"/etc/hostname\"}]}}"
  }

  assert {
    condition     = nonsensitive(libvirt_ignition.user_data[0].content) == "{\"ignition\":{\"version\":\"3.2.0\"},\"storage\":{\"files\":[{\"path\":\"/etc/hostname\"}]}}"
    error_message = "User data that writes the hostname is taken as it is."
  }
}

run "answers_the_outputs_of_the_contract" {
  override_resource {
    target = libvirt_domain.this
    values = {
      id                = "a2261a57-b4dd-435e-a553-4f7a0ef64ba6"
      network_interface = { addresses = ["192.168.126.51"] }
    }
  }

  assert {
    condition     = output.provider_id == "libvirt:///a2261a57-b4dd-435e-a553-4f7a0ef64ba6" && output.instance_id == "a2261a57-b4dd-435e-a553-4f7a0ef64ba6"
    error_message = "The instance ID is the domain's UUID."
  }
  assert {
    condition     = output.instance_state == "Running"
    error_message = "The domain runs."
  }
  assert {
    condition = jsonencode(output.addresses) == jsonencode([
      { type = "InternalIP", address = "192.168.126.51" },
      { type = "InternalDNS", address = "demo-x7k2p-worker-0-abcde" },
      { type = "Hostname", address = "demo-x7k2p-worker-0-abcde" },
    ])
    error_message = "Addresses are what DHCP gave, and the name that its certificate is requested for."
  }
}

run "changes_autostart_in_place" {
  command = plan

  variables {
    provider_spec = {
      domainMemory            = 7168
      domainVcpu              = 4
      ignition                = { userDataSecret = "worker-user-data" }
      volume                  = { poolName = "demo-x7k2p", baseVolumeID = "demo-x7k2p-base" }
      networkInterfaceName    = "demo-x7k2p"
      networkInterfaceAddress = "192.168.126.0/24"
      autostart               = true
      uri                     = "qemu+tcp://192.168.122.1/system"
    }
  }

  assert {
    condition     = libvirt_domain.this.autostart && libvirt_domain.this.id == "a2261a57-b4dd-435e-a553-4f7a0ef64ba6"
    error_message = "The domain that is there starts with its host from now on."
  }
}

run "refuses_what_would_need_another_domain" {
  command = plan

  variables {
    provider_spec = {
      domainMemory            = 16384
      domainVcpu              = 4
      ignition                = { userDataSecret = "worker-user-data" }
      volume                  = { poolName = "demo-x7k2p", baseVolumeID = "demo-x7k2p-base" }
      networkInterfaceName    = "demo-x7k2p"
      networkInterfaceAddress = "192.168.126.0/24"
      uri                     = "qemu+tcp://192.168.122.1/system"
    }
  }

  expect_failures = [terraform_data.made_with]
}

run "leaves_other_user_data_to_later_machines" {
  command = plan

  variables {
    user_data = "{\"ignition\":{\"version\":\"3.4.0\"}}"
  }

  assert {
    condition     = strcontains(nonsensitive(libvirt_ignition.user_data[0].content), "config/worker")
    error_message = "What has booted reads nothing of it."
  }
}

run "is_the_same_without_its_user_data" {
  command = plan

  variables {
    user_data = ""
  }

  assert {
    condition     = strcontains(nonsensitive(libvirt_ignition.user_data[0].content), "config/worker")
    error_message = "What has booted reads nothing of it."
  }
}
