mock_provider "openstack" {
  mock_data "openstack_networking_networks_v2" {
    defaults = { ids = ["network-1"] }
  }
  mock_data "openstack_networking_subnets_v2" {
    defaults = { ids = ["subnet-1"], network_ids = ["network-2"] }
  }
  mock_data "openstack_networking_secgroups_v2" {
    defaults = { ids = ["group-1"] }
  }
  mock_data "openstack_networking_ports_v2" {
    defaults = { ids = ["port-1"], addresses = ["10.0.0.5"] }
  }
  mock_data "openstack_images_image_ids_v2" {
    defaults = { ids = ["image-1"] }
  }
  mock_data "openstack_compute_servergroups_v2" {
    defaults = { ids = ["sg1"], names = ["demo-x7k2p-worker"] }
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
  # As OpenShift's installer writes it for a worker.
  provider_spec = {
    cloudName       = "openstack"
    cloudsSecret    = { name = "openstack-cloud-credentials", namespace = "openshift-machine-api" }
    flavor          = "m1.xlarge"
    image           = "demo-x7k2p-rhcos"
    networks        = [{ filter = {}, subnets = [{ filter = { name = "demo-x7k2p-nodes", tags = "openshiftClusterID=demo-x7k2p" } }] }]
    securityGroups  = [{ filter = {}, name = "demo-x7k2p-worker" }]
    serverGroupName = "demo-x7k2p-worker"
    serverMetadata  = { Name = "demo-x7k2p-worker", openshiftClusterID = "demo-x7k2p" }
    tags            = ["openshiftClusterID=demo-x7k2p"]
    trunk           = true
    userDataSecret  = { name = "worker-user-data" }
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "makes_the_worker_that_the_installer_asks_for" {
  command = plan

  assert {
    condition     = [openstack_compute_instance_v2.this.name, openstack_compute_instance_v2.this.flavor_name, openstack_compute_instance_v2.this.image_name] == ["demo-x7k2p-worker-0-abcde", "m1.xlarge", "demo-x7k2p-rhcos"]
    error_message = "Name, flavor and image are those that are asked for."
  }
  assert {
    condition     = nonsensitive(openstack_compute_instance_v2.this.user_data) == "{\"ignition\":{\"version\":\"3.2.0\"}}"
    error_message = "Ignition finds the user data."
  }
  assert {
    condition     = openstack_compute_instance_v2.this.metadata == tomap({ Name = "demo-x7k2p-worker", openshiftClusterID = "demo-x7k2p", "machine-iac.io_machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "It names the Machine and its cluster."
  }
  assert {
    condition     = openstack_compute_instance_v2.this.tags == toset(["openshiftClusterID=demo-x7k2p", "cluster-api-provider-openstack", "openshift-machine-api-demo-x7k2p"]) && openstack_compute_instance_v2.this.config_drive == false
    error_message = "It has its tag and those that OpenShift's provider adds, and no config drive."
  }
  assert {
    condition     = [data.openstack_networking_subnets_v2.named["0.0"].name, data.openstack_networking_subnets_v2.named["0.0"].tags, data.openstack_networking_subnets_v2.named["0.0"].network_id] == ["demo-x7k2p-nodes", "openshiftClusterID=demo-x7k2p", ""]
    error_message = "The subnet is looked for by name and tag, in any network."
  }
  assert {
    condition     = jsonencode({ for key, port in openstack_networking_port_v2.interface : key => [port.name, port.network_id, port.fixed_ip[0].subnet_id] }) == jsonencode({ "0" = ["demo-x7k2p-worker-0-abcde-0", "network-2", "subnet-1"] })
    error_message = "It has one port, in that subnet."
  }
  assert {
    condition     = openstack_networking_port_v2.interface["0"].security_group_ids == toset(["group-1"]) && data.openstack_networking_secgroups_v2.named[0].name == "demo-x7k2p-worker"
    error_message = "The port has the security group."
  }
  assert {
    condition     = keys(data.openstack_networking_ports_v2.shared) == ["api", "ingress"] && [for pair in openstack_networking_port_v2.interface["0"].allowed_address_pairs : pair.ip_address] == ["10.0.0.5"]
    error_message = "The port may use the addresses of the API and of ingress."
  }
  assert {
    condition     = openstack_networking_port_v2.interface["0"].tags == toset(["openshiftClusterID=demo-x7k2p", "cluster-api-provider-openstack", "openshift-machine-api-demo-x7k2p", "machine-uid=5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"]) && strcontains(openstack_networking_port_v2.interface["0"].description, "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1")
    error_message = "The port names the Machine and its cluster."
  }
  assert {
    condition     = [for trunk in openstack_networking_trunk_v2.interface : trunk.name] == ["demo-x7k2p-worker-0-abcde-0"] && openstack_networking_trunk_v2.interface["0"].tags == openstack_networking_port_v2.interface["0"].tags
    error_message = "The port is a trunk's."
  }
  assert {
    condition     = [openstack_compute_servergroup_shared_v2.shared[0].name, openstack_compute_servergroup_shared_v2.shared[0].policy] == ["demo-x7k2p-worker", "soft-anti-affinity"]
    error_message = "There is a server group, which spreads servers over hosts where there is room."
  }
  assert {
    condition     = length(openstack_compute_instance_v2.this.network) == 1 && length(openstack_compute_instance_v2.this.scheduler_hints) == 1
    error_message = "The server has the port, and is in the server group."
  }
  assert {
    condition     = length(openstack_blockstorage_volume_v3.disk) + length(openstack_networking_floatingip_associate_v2.public) + length(openstack_compute_instance_v2.this.block_device) == 0
    error_message = "There is nothing that nobody asks for."
  }
}

run "makes_the_control_plane_machine_that_the_installer_asks_for" {
  command = plan

  variables {
    machine = {
      name       = "demo-x7k2p-master-0"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo-x7k2p"
      labels     = { "machine.openshift.io/cluster-api-machine-role" = "master", "machine.openshift.io/cluster-api-machine-type" = "master" }
    }
    provider_spec = {
      availabilityZone = "az0"
      cloudName        = "openstack"
      cloudsSecret     = { name = "openstack-cloud-credentials", namespace = "openshift-machine-api" }
      flavor           = "m1.xlarge"
      image            = "demo-x7k2p-rhcos"
      networks         = [{ filter = {}, subnets = [{ filter = { name = "demo-x7k2p-nodes", tags = "openshiftClusterID=demo-x7k2p" } }] }]
      rootVolume       = { diskSize = 100, volumeType = "fast", availabilityZone = "cinder-az0" }
      securityGroups   = [{ filter = {}, name = "demo-x7k2p-master" }]
      serverGroupName  = "demo-x7k2p-master"
      serverMetadata   = { Name = "demo-x7k2p-master", openshiftClusterID = "demo-x7k2p" }
      tags             = ["openshiftClusterID=demo-x7k2p"]
      trunk            = true
      userDataSecret   = { name = "master-user-data" }
    }
  }

  assert {
    condition     = jsonencode([for volume in openstack_blockstorage_volume_v3.disk : [volume.name, volume.size, volume.image_id, volume.volume_type, volume.availability_zone]]) == jsonencode([["demo-x7k2p-master-0-root", 100, "image-1", "fast", "cinder-az0"]])
    error_message = "The volume is made from the image, in its zone."
  }
  assert {
    condition     = openstack_blockstorage_volume_v3.disk["root"].metadata == tomap({ openshiftClusterID = "demo-x7k2p", "machine-iac.io_machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "The volume names the Machine and its cluster."
  }
  assert {
    condition     = jsonencode([for device in openstack_compute_instance_v2.this.block_device : [device.source_type, device.destination_type, device.boot_index, device.delete_on_termination]]) == jsonencode([["volume", "volume", 0, true]])
    error_message = "The server boots from the volume, which goes with it."
  }
  assert {
    condition     = openstack_compute_instance_v2.this.availability_zone == "az0"
    error_message = "The server is in its zone."
  }
}

run "takes_every_field" {
  command = plan

  variables {
    provider_spec = {
      cloudName      = "openstack"
      cloudsSecret   = { name = "c" }
      userDataSecret = { name = "u" }
      flavor         = "m1.large"
      image          = "0f6b9a3c-5d1e-4f2a-9a77-6c0f7f9f2f10"
      keyName        = "core"
      networks = [
        { uuid = "n1", noAllowedAddressPairs = true, portTags = ["of-n1"], vnicType = "direct", profile = { capabilities = "[switchdev]", trusted = "true" }, portSecurity = false },
        {
          filter   = { name = "a", description = "b", projectId = "c", tenantId = "not-c", tags = "d,e", tagsAny = "f", notTags = "g", notTagsAny = "h" }
          portTags = ["of-n2"]
          subnets = [
            { uuid = "s1", portTags = ["of-s1"] },
            { filter = { name = "a", description = "b", tenantId = "c", tags = "d", tagsAny = "e", notTags = "f", notTagsAny = "g", ipVersion = 6, gateway_ip = "fd2e::1", cidr = "fd2e::/64", ipv6AddressMode = "slaac", ipv6RaMode = "slaac" }, portTags = ["of-s2"] },
          ]
        },
        { noAllowedAddressPairs = true, portTags = ["of-both"], subnets = [{ uuid = "s5", portTags = ["of-s5"] }, { filter = { id = "s6" } }] },
      ]
      ports = [
        { networkID = "n3" },
        {
          networkID           = "n4", nameSuffix = "storage", description = "for storage", adminStateUp = false, macAddress = "fa:16:3e:00:00:01", tags = ["of/port"], vnicType = "vdpa", portSecurity = true, trunk = false
          fixedIPs            = [{ subnetID = "s3", ipAddress = "10.1.0.9" }, { ipAddress = "10.1.0.10" }], securityGroups = ["g9"], profile = { trusted = "true" }
          allowedAddressPairs = [{ ipAddress = "10.1.0.0/24", macAddress = "fa:16:3e:00:00:02" }, { ipAddress = "10.2.0.1" }]
        },
        { nameSuffix = "backup", fixedIPs = [{ subnetID = "s7" }] },
      ]
      floatingIP       = "203.0.113.7"
      availabilityZone = "az1"
      securityGroups   = [{ uuid = "g1" }, { name = "g2" }, { filter = { name = "a", description = "b", projectId = "c", tags = "d", tagsAny = "e", notTags = "f", notTagsAny = "g" } }, { filter = { id = "g4" } }]
      trunk            = true
      tags             = ["a"]
      serverMetadata   = { "machine-iac.io_machine-uid" = "somebody else", role = "worker" }
      configDrive      = true
      additionalBlockDevices = [
        { name = "etcd", sizeGiB = 10, storage = { type = "Local" } },
        { name = "images", sizeGiB = 20, storage = { type = "Volume", volume = { type = "fast", availabilityZone = "cinder-az1" } } },
        { name = "logs", sizeGiB = 30, storage = { type = "Volume" } },
      ]
      serverGroupID = "sg1"
    }
  }

  assert {
    condition     = jsonencode({ for key, search in data.openstack_networking_networks_v2.named : key => [search.name, search.description, search.project_id, search.tags, search.tags_any, search.not_tags, search.not_tags_any] }) == jsonencode({ "1" = ["a", "b", "c", "d,e", "f", "g", "h"] })
    error_message = "Networks are looked for by all given fields, and one that is named by its id is not."
  }
  assert {
    condition     = jsonencode({ for key, search in data.openstack_networking_subnets_v2.named : key => [search.network_id, search.subnet_id, search.name, search.description, search.project_id, search.tags, search.tags_any, search.not_tags, search.not_tags_any] }) == jsonencode({ "1.1" = ["network-1", "", "a", "b", "c", "d", "e", "f", "g"], "2.0" = ["", "s5", "", "", "", "", "", "", ""], "2.1" = ["", "s6", "", "", "", "", "", "", ""], "port1.1" = ["n4", "", "", "", "", "", "", "", ""], "port2.0" = ["", "s7", "", "", "", "", "", "", ""] })
    error_message = "So are subnets, in their network; where none is named, it is the subnet's."
  }
  assert {
    condition     = jsonencode([for search in [data.openstack_networking_subnets_v2.named["1.1"]] : [search.ip_version, search.gateway_ip, search.cidr, search.ipv6_address_mode, search.ipv6_ra_mode]]) == jsonencode([[6, "fd2e::1", "fd2e::/64", "slaac", "slaac"]])
    error_message = "So are their addresses."
  }
  assert {
    condition     = jsonencode({ for key, search in data.openstack_networking_secgroups_v2.named : key => [search.name, search.description, search.project_id, search.tags, search.tags_any, search.not_tags, search.not_tags_any] }) == jsonencode({ "1" = ["g2", "", "", "", "", "", ""], "2" = ["a", "b", "c", "d", "e", "f", "g"] })
    error_message = "So are security groups."
  }
  assert {
    condition     = { for key, port in openstack_networking_port_v2.interface : key => "${port.name} ${port.network_id}" } == { "0" = "demo-x7k2p-worker-0-abcde-0 n1", "1" = "demo-x7k2p-worker-0-abcde-1 network-1", "2" = "demo-x7k2p-worker-0-abcde-2 network-2", "3" = "demo-x7k2p-worker-0-abcde-3 network-2", "4" = "demo-x7k2p-worker-0-abcde-4 n3", storage = "demo-x7k2p-worker-0-abcde-storage n4", backup = "demo-x7k2p-worker-0-abcde-backup network-2" }
    error_message = "There is a port for each network and port, and each subnet without a network, called by its position or suffix."
  }
  assert {
    condition     = jsonencode({ for key, port in openstack_networking_port_v2.interface : key => port.fixed_ip[*].subnet_id }) == jsonencode({ "0" = [], "1" = ["s1", "subnet-1"], "2" = ["subnet-1"], "3" = ["subnet-1"], "4" = [], backup = ["subnet-1"], storage = ["s3", "subnet-1"] })
    error_message = "Subnets of one network are addresses of one port."
  }
  assert {
    condition     = openstack_networking_port_v2.interface["1"].tags == toset(["a", "cluster-api-provider-openstack", "openshift-machine-api-demo-x7k2p", "of-n2", "of-s1", "of-s2", "openshiftClusterID=demo-x7k2p", "machine-uid=5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"]) && openstack_networking_trunk_v2.interface["1"].tags == openstack_networking_port_v2.interface["1"].tags
    error_message = "A port has the tags of all its subnets, and its trunk too."
  }
  assert {
    condition     = openstack_networking_port_v2.interface["storage"].binding[0].vnic_type == "vdpa" && jsondecode(openstack_networking_port_v2.interface["storage"].binding[0].profile) == { trusted = true }
    error_message = "Neutron is asked for any type of interface."
  }
  assert {
    condition     = openstack_networking_port_v2.interface["0"].no_security_groups && openstack_networking_port_v2.interface["0"].port_security_enabled == false && openstack_networking_port_v2.interface["0"].security_group_ids == null && length(openstack_networking_port_v2.interface["0"].allowed_address_pairs) == 0
    error_message = "A port without security has neither security groups nor other addresses."
  }
  assert {
    condition     = openstack_networking_port_v2.interface["0"].binding[0].vnic_type == "direct" && jsondecode(openstack_networking_port_v2.interface["0"].binding[0].profile) == { capabilities = ["switchdev"], trusted = true }
    error_message = "The interface's type and profile are the network's, as OpenShift's provider writes them."
  }
  assert {
    condition     = contains(openstack_networking_port_v2.interface["0"].tags, "of-n1") && contains(openstack_networking_port_v2.interface["2"].tags, "of-s5") && contains(openstack_networking_port_v2.interface["3"].tags, "of-both") && contains(openstack_networking_port_v2.interface["storage"].tags, "of/port") && contains(openstack_networking_port_v2.interface["4"].tags, "a")
    error_message = "Ports have the tags of their network, subnet and Machine."
  }
  assert {
    condition     = [for pair in openstack_networking_port_v2.interface["1"].allowed_address_pairs : pair.ip_address] == ["10.0.0.5"] && length(openstack_networking_port_v2.interface["4"].allowed_address_pairs) == 0
    error_message = "Ports of networks may use the shared addresses, others to their own."
  }
  assert {
    condition     = [openstack_networking_port_v2.interface["storage"].description, openstack_networking_port_v2.interface["storage"].mac_address] == ["for storage Machine 5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1", "fa:16:3e:00:00:01"] && openstack_networking_port_v2.interface["storage"].admin_state_up == false && openstack_networking_port_v2.interface["storage"].port_security_enabled
    error_message = "A port has its description, address and state."
  }
  assert {
    condition     = jsonencode([for fixed in openstack_networking_port_v2.interface["storage"].fixed_ip : [fixed.subnet_id, fixed.ip_address]]) == jsonencode([["s3", "10.1.0.9"], ["subnet-1", "10.1.0.10"]])
    error_message = "A port has its fixed addresses."
  }
  assert {
    condition     = { for pair in openstack_networking_port_v2.interface["storage"].allowed_address_pairs : pair.ip_address => pair.mac_address == null ? "" : pair.mac_address } == { "10.1.0.0/24" = "fa:16:3e:00:00:02", "10.2.0.1" = "" }
    error_message = "A port has its other addresses."
  }
  assert {
    condition     = openstack_networking_port_v2.interface["storage"].security_group_ids == toset(["g9"]) && openstack_networking_port_v2.interface["4"].security_group_ids == toset(["g1", "group-1", "g4"])
    error_message = "A port has its own security groups, or else the Machine's."
  }
  assert {
    condition     = keys(openstack_networking_trunk_v2.interface) == ["0", "1", "2", "3", "4", "backup"]
    error_message = "All ports are trunks' but the one that is not to be."
  }
  assert {
    condition     = openstack_networking_floatingip_associate_v2.public[0].floating_ip == "203.0.113.7"
    error_message = "It has its floating address."
  }
  assert {
    condition     = [openstack_compute_instance_v2.this.key_pair, openstack_compute_instance_v2.this.availability_zone] == ["core", "az1"] && openstack_compute_instance_v2.this.config_drive
    error_message = "It has its key, zone and config drive."
  }
  assert {
    condition     = openstack_compute_instance_v2.this.metadata == tomap({ role = "worker", openshiftClusterID = "demo-x7k2p", "machine-iac.io_machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "It has its metadata, and nobody else's UID."
  }
  assert {
    condition     = [for hint in openstack_compute_instance_v2.this.scheduler_hints : hint.group] == ["sg1"] && length(openstack_compute_servergroup_shared_v2.shared) == 0
    error_message = "It is in the server group of that id."
  }
  assert {
    condition     = jsonencode([for device in openstack_compute_instance_v2.this.block_device : [device.source_type, device.destination_type, device.volume_size, device.boot_index]]) == jsonencode([["image", "local", null, 0], ["blank", "local", 10, -1], ["volume", "volume", null, -1], ["volume", "volume", null, -1]]) && openstack_compute_instance_v2.this.block_device[0].uuid == "0f6b9a3c-5d1e-4f2a-9a77-6c0f7f9f2f10"
    error_message = "It boots from the image, and has its other disks."
  }
  # The provider looks for the image of the first block device only where it is the server's too, and refuses a server without one.
  assert {
    condition     = openstack_compute_instance_v2.this.image_id == "0f6b9a3c-5d1e-4f2a-9a77-6c0f7f9f2f10"
    error_message = "The image of a disk beside others is the server's too."
  }
  assert {
    condition     = jsonencode({ for name, volume in openstack_blockstorage_volume_v3.disk : name => [volume.name, volume.size, volume.image_id] }) == jsonencode({ images = ["demo-x7k2p-worker-0-abcde-images", 20, null], logs = ["demo-x7k2p-worker-0-abcde-logs", 30, null] }) && openstack_blockstorage_volume_v3.disk["images"].volume_type == "fast"
    error_message = "Volumes are called as the Machine and the block device."
  }
  assert {
    condition     = [openstack_blockstorage_volume_v3.disk["images"].availability_zone, openstack_blockstorage_volume_v3.disk["logs"].availability_zone] == ["cinder-az1", "az1"]
    error_message = "A volume is in its zone, or else in the server's."
  }
}

run "has_the_image_that_it_finds_for_a_disk_beside_others" {
  command = plan

  variables {
    provider_spec = {
      cloudName              = "openstack"
      cloudsSecret           = { name = "c" }
      flavor                 = "m1.large"
      image                  = "rhcos"
      networks               = [{ uuid = "n" }]
      additionalBlockDevices = [{ name = "etcd", sizeGiB = 10, storage = { type = "Local" } }]
    }
  }

  assert {
    condition     = openstack_compute_instance_v2.this.image_id == "image-1" && openstack_compute_instance_v2.this.block_device[0].uuid == "image-1"
    error_message = "The server and its first disk have the image of that name."
  }
}

run "boots_from_a_volume_by_the_old_name_of_its_image" {
  command = plan

  variables {
    provider_spec = {
      cloudName    = "openstack"
      cloudsSecret = { name = "c" }
      flavor       = "m1.large"
      networks     = [{ uuid = "n" }]
      rootVolume   = { sourceUUID = "rhcos", diskSize = 16 }
    }
  }

  assert {
    condition     = data.openstack_images_image_ids_v2.boot[0].name == "rhcos" && openstack_blockstorage_volume_v3.disk["root"].image_id == "image-1"
    error_message = "The image is looked for."
  }
}

run "has_the_refusal_name_what_is_not_found" {
  command = plan

  variables {
    provider_spec = {
      cloudName      = "openstack"
      cloudsSecret   = { name = "c" }
      flavor         = "m1.large"
      image          = "rhcos"
      networks       = [{ filter = { name = "x" } }, { subnets = [{ filter = { name = "y" } }] }]
      securityGroups = [{ name = "z" }]
      rootVolume     = { diskSize = 16 }
    }
  }

  override_data {
    target = data.openstack_networking_networks_v2.named
    values = { ids = ["network-1", "network-2"] }
  }
  override_data {
    target = data.openstack_networking_subnets_v2.named
    values = { ids = [], network_ids = [] }
  }
  override_data {
    target = data.openstack_networking_secgroups_v2.named
    values = { ids = [] }
  }
  override_data {
    target = data.openstack_images_image_ids_v2.boot
    values = { ids = [] }
  }

  assert {
    condition     = [openstack_networking_port_v2.interface["0"].network_id, openstack_networking_port_v2.interface["1"].fixed_ip[0].subnet_id] == ["no single network is what networks[0] names", "no single subnet is what networks[1].subnets[0] names"]
    error_message = "Networks and subnets that are not found are named."
  }
  assert {
    condition     = openstack_networking_port_v2.interface["0"].security_group_ids == toset(["no security group is what securityGroups[0] names"])
    error_message = "So are security groups."
  }
  assert {
    condition     = openstack_blockstorage_volume_v3.disk["root"].image_id == "no single image is called rhcos"
    error_message = "So are images."
  }
}

run "boots_from_the_image_of_a_root_volume_without_a_size" {
  command = plan

  variables {
    provider_spec = {
      cloudName    = "openstack"
      cloudsSecret = { name = "c" }
      flavor       = "m1.large"
      networks     = [{ uuid = "n" }]
      rootVolume   = { sourceUUID = "rhcos" }
    }
  }

  expect_failures = [check.ignored]

  assert {
    condition     = openstack_compute_instance_v2.this.image_name == "rhcos" && length(openstack_blockstorage_volume_v3.disk) == 0
    error_message = "The image is the root volume's, and there is no volume."
  }
}

run "uses_the_addresses_of_the_infrastructure" {
  command = plan

  variables {
    cluster = { platform = "OpenStack", api_vips = ["10.0.0.11", "fd2e::11"], ingress_vips = ["10.0.0.12"] }
    provider_spec = {
      cloudName    = "openstack"
      cloudsSecret = { name = "c" }
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }, { uuid = "m", noAllowedAddressPairs = true }]
      ports        = [{ networkID = "o" }]
    }
  }

  assert {
    condition     = jsonencode({ for key, port in openstack_networking_port_v2.interface : key => sort(port.allowed_address_pairs[*].ip_address) }) == jsonencode({ "0" = ["10.0.0.11", "10.0.0.12", "fd2e::11"], "1" = [], "2" = [] })
    error_message = "Ports of networks may use the addresses of the API and of ingress."
  }
  assert {
    condition     = length(data.openstack_networking_ports_v2.shared) == 0
    error_message = "They are not looked for."
  }
}

run "leaves_the_addresses_to_a_load_balancer_of_the_user" {
  command = plan

  variables {
    cluster = { platform = "OpenStack" }
  }

  assert {
    condition     = length(openstack_networking_port_v2.interface["0"].allowed_address_pairs) + length(data.openstack_networking_ports_v2.shared) == 0
    error_message = "There are none of the cluster's."
  }
}

run "is_in_a_server_group_that_both_fields_name" {
  command = plan

  variables {
    provider_spec = {
      cloudName       = "openstack"
      cloudsSecret    = { name = "c" }
      flavor          = "m1.large"
      image           = "rhcos"
      networks        = [{ uuid = "n" }]
      serverGroupID   = "sg1"
      serverGroupName = "demo-x7k2p-worker"
    }
  }

  assert {
    condition     = [for hint in openstack_compute_instance_v2.this.scheduler_hints : hint.group] == ["sg1"] && length(openstack_compute_servergroup_shared_v2.shared) == 0
    error_message = "The server is in the group of the id, and none is made."
  }
}

run "refuses_a_server_group_of_another_name" {
  command = plan

  variables {
    provider_spec = {
      cloudName       = "openstack"
      cloudsSecret    = { name = "c" }
      flavor          = "m1.large"
      image           = "rhcos"
      networks        = [{ uuid = "n" }]
      serverGroupID   = "sg1"
      serverGroupName = "demo-x7k2p-infra"
    }
  }

  expect_failures = [openstack_compute_instance_v2.this]
}

run "has_as_many_tags_as_nova_takes" {
  command = plan

  variables {
    machine = {
      name       = "worker-1"
      namespace  = "a-namespace-with-a-name-that-is-as-long-as-the-names-of-namespaces-may"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo-x7k2p"
      labels     = {}
    }
    provider_spec = {
      cloudName    = "openstack"
      cloudsSecret = { name = "c" }
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      tags         = [for i in range(50) : "tag-${i}"]
    }
  }

  assert {
    condition     = length(openstack_compute_instance_v2.this.tags) == 50 && !contains(openstack_compute_instance_v2.this.tags, "cluster-api-provider-openstack")
    error_message = "Those of the providerSpec come first."
  }
}

run "takes_a_name_that_is_longer_than_a_hostname" {
  command = plan

  variables {
    machine = {
      name       = "a-name-of-a-machine-that-has-more-characters-than-a-hostname-may-have"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo-x7k2p"
      labels     = {}
    }
  }

  assert {
    condition     = openstack_compute_instance_v2.this.name == "a-name-of-a-machine-that-has-more-characters-than-a-hostname-may-have"
    error_message = "Nova makes a hostname of it."
  }
}
