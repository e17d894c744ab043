mock_provider "openstack" {
  mock_data "openstack_networking_subnets_v2" {
    defaults = { ids = ["subnet-1"], network_ids = ["network-1"] }
  }
  mock_data "openstack_networking_secgroups_v2" {
    defaults = { ids = ["group-1"] }
  }
  mock_resource "openstack_compute_instance_v2" {
    defaults = {
      id     = "8c7a2e90-0d3b-4ac5-bf34-2f7a3b0a1f11"
      region = "RegionOne"
    }
  }
  mock_resource "openstack_networking_port_v2" {
    defaults = { id = "port-1", all_fixed_ips = ["10.0.0.15", "fd2e::15"] }
  }
  mock_resource "openstack_blockstorage_volume_v3" {
    defaults = { id = "volume-1" }
  }
  mock_resource "openstack_compute_servergroup_shared_v2" {
    defaults = { id = "server-group-1" }
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
  # As OpenShift's installer writes it for a worker, and a floating address.
  provider_spec = {
    availabilityZone = "nova"
    rootVolume       = { diskSize = 100 }
    cloudName        = "openstack"
    cloudsSecret     = { name = "openstack-cloud-credentials", namespace = "openshift-machine-api" }
    flavor           = "m1.xlarge"
    image            = "demo-x7k2p-rhcos"
    networks         = [{ filter = {}, subnets = [{ filter = { name = "demo-x7k2p-nodes", tags = "openshiftClusterID=demo-x7k2p" } }] }]
    securityGroups   = [{ filter = {}, name = "demo-x7k2p-worker" }]
    serverGroupName  = "demo-x7k2p-worker"
    serverMetadata   = { Name = "demo-x7k2p-worker", openshiftClusterID = "demo-x7k2p" }
    tags             = ["openshiftClusterID=demo-x7k2p"]
    trunk            = true
    floatingIP       = "203.0.113.7"
    userDataSecret   = { name = "worker-user-data" }
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "answers_the_outputs_of_the_contract" {
  assert {
    condition     = output.provider_id == "openstack:///8c7a2e90-0d3b-4ac5-bf34-2f7a3b0a1f11"
    error_message = "The providerID is written as the cloud provider writes it."
  }
  assert {
    condition     = [output.instance_id, output.instance_state, output.instance_type, output.region, output.zone] == ["8c7a2e90-0d3b-4ac5-bf34-2f7a3b0a1f11", "ACTIVE", "m1.xlarge", "RegionOne", "nova"]
    error_message = "Id, state, flavor, region and zone are published."
  }
  assert {
    condition = jsonencode(output.addresses) == jsonencode([
      { type = "InternalIP", address = "10.0.0.15" }, { type = "InternalIP", address = "fd2e::15" }, { type = "ExternalIP", address = "203.0.113.7" },
      { type = "Hostname", address = "demo-x7k2p-worker-0-abcde" }, { type = "InternalDNS", address = "demo-x7k2p-worker-0-abcde" },
    ])
    error_message = "The addresses are the ports' and the floating one, and the names those that certificates of Nodes are approved by."
  }
}

run "records_what_it_was_made_of" {
  assert {
    condition = jsonencode(output.recorded) == jsonencode({
      image_id = "no single image is called demo-x7k2p-rhcos", network_ids = {}, security_group_ids = ["group-1"], shared_addresses = [], subnet_ids = { "0.0" = { id = "subnet-1", network = "network-1" } }
    })
    error_message = "What was found by name is recorded with the server."
  }
}

run "reads_nothing_by_name_once_it_is_there" {
  command = plan

  variables {
    recorded = {
      image_id = "image-1", network_ids = {}, security_group_ids = ["group-1"], shared_addresses = ["10.0.0.5"], subnet_ids = { "0.0" = { id = "subnet-1", network = "network-1" } }
    }
  }

  assert {
    condition = 0 == length(data.openstack_networking_subnets_v2.named) + length(data.openstack_networking_secgroups_v2.named) + (
      length(data.openstack_networking_ports_v2.shared) + length(data.openstack_images_image_ids_v2.boot)
    )
    error_message = "What it was made of may be gone."
  }
  assert {
    condition     = openstack_networking_port_v2.interface["0"].network_id == "network-1"
    error_message = "The port stays where it is."
  }
}

run "refuses_a_network_that_was_not_recorded" {
  command = plan

  variables {
    recorded = {
      image_id = "image-1", network_ids = {}, security_group_ids = ["group-1"], shared_addresses = ["10.0.0.5"], subnet_ids = { "0.0" = { id = "subnet-1", network = "network-1" } }
    }
    provider_spec = {
      availabilityZone = "nova"
      rootVolume       = { diskSize = 100 }
      cloudName        = "openstack"
      cloudsSecret     = { name = "openstack-cloud-credentials", namespace = "openshift-machine-api" }
      flavor           = "m1.xlarge"
      image            = "demo-x7k2p-rhcos"
      networks = [
        { filter = {}, subnets = [{ filter = { name = "demo-x7k2p-nodes", tags = "openshiftClusterID=demo-x7k2p" } }] },
        { filter = { name = "other" } },
      ]
      securityGroups  = [{ filter = {}, name = "demo-x7k2p-worker" }]
      serverGroupName = "demo-x7k2p-worker"
      serverMetadata  = { Name = "demo-x7k2p-worker", openshiftClusterID = "demo-x7k2p" }
      tags            = ["openshiftClusterID=demo-x7k2p"]
      trunk           = true
      floatingIP      = "203.0.113.7"
      userDataSecret  = { name = "worker-user-data" }
    }
  }

  expect_failures = [terraform_data.made_with]
}

run "has_what_belongs_to_the_server_hang_together" {
  command = plan

  assert {
    condition     = [for network in openstack_compute_instance_v2.this.network : network.port] == ["port-1"] && openstack_networking_trunk_v2.interface["0"].port_id == "port-1"
    error_message = "The server has the port, which is the trunk's."
  }
  assert {
    condition     = [for hint in openstack_compute_instance_v2.this.scheduler_hints : hint.group] == ["server-group-1"]
    error_message = "The server is in the server group."
  }
  assert {
    condition     = openstack_compute_instance_v2.this.block_device[0].uuid == "volume-1"
    error_message = "The server boots from the volume."
  }
  assert {
    condition     = openstack_networking_floatingip_associate_v2.public[0].port_id == "port-1"
    error_message = "The floating address is the port's."
  }
}

run "takes_other_credentials" {
  command = plan

  variables {
    provider_spec = {
      availabilityZone = "nova"
      rootVolume       = { diskSize = 100 }
      cloudName        = "other"
      cloudsSecret     = { name = "other" }
      flavor           = "m1.xlarge"
      image            = "demo-x7k2p-rhcos"
      networks         = [{ filter = {}, subnets = [{ filter = { name = "demo-x7k2p-nodes", tags = "openshiftClusterID=demo-x7k2p" } }] }]
      securityGroups   = [{ filter = {}, name = "demo-x7k2p-worker" }]
      serverGroupName  = "demo-x7k2p-worker"
      serverMetadata   = { Name = "demo-x7k2p-worker", openshiftClusterID = "demo-x7k2p" }
      tags             = ["openshiftClusterID=demo-x7k2p"]
      trunk            = true
      floatingIP       = "203.0.113.7"
      userDataSecret   = { name = "other-name-of-the-same" }
    }
  }

  assert {
    condition     = openstack_compute_instance_v2.this.id == "8c7a2e90-0d3b-4ac5-bf34-2f7a3b0a1f11"
    error_message = "It is the same server."
  }
}

run "refuses_another_flavor" {
  command = plan

  variables {
    provider_spec = {
      availabilityZone = "nova"
      rootVolume       = { diskSize = 100 }
      cloudName        = "openstack"
      cloudsSecret     = { name = "openstack-cloud-credentials", namespace = "openshift-machine-api" }
      flavor           = "m1.large"
      image            = "demo-x7k2p-rhcos"
      networks         = [{ filter = {}, subnets = [{ filter = { name = "demo-x7k2p-nodes", tags = "openshiftClusterID=demo-x7k2p" } }] }]
      securityGroups   = [{ filter = {}, name = "demo-x7k2p-worker" }]
      serverGroupName  = "demo-x7k2p-worker"
      serverMetadata   = { Name = "demo-x7k2p-worker", openshiftClusterID = "demo-x7k2p" }
      tags             = ["openshiftClusterID=demo-x7k2p"]
      trunk            = true
      floatingIP       = "203.0.113.7"
      userDataSecret   = { name = "worker-user-data" }
    }
  }

  expect_failures = [terraform_data.made_with]
}

run "leaves_other_user_data_to_later_machines" {
  command = plan

  variables {
    user_data = "{}"
  }

  assert {
    condition     = strcontains(nonsensitive(openstack_compute_instance_v2.this.user_data), "3.2.0")
    error_message = "What has booted reads nothing of it."
  }
}

run "is_the_same_without_its_user_data" {
  command = plan

  variables {
    user_data = ""
  }

  assert {
    condition     = strcontains(nonsensitive(openstack_compute_instance_v2.this.user_data), "3.2.0")
    error_message = "What has booted reads nothing of it."
  }
}
