# The engine cannot mock an import, so what is found once is left to tests with a provider.
mock_provider "openstack" {
  mock_data "openstack_networking_subnets_v2" {
    defaults = { ids = ["subnet-1"], network_ids = ["network-1"] }
  }
  mock_data "openstack_networking_secgroups_v2" {
    defaults = { ids = ["group-1"] }
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

run "finds_nothing" {
  command = plan

  override_data {
    target = data.openstack_compute_instances_v2.lost
    values = { ids = [] }
  }
  override_data {
    target = data.openstack_networking_ports_v2.lost
    values = { ids = [] }
  }
}

run "two_servers_stop_it" {
  command = plan

  override_data {
    target = data.openstack_compute_instances_v2.lost
    values = { ids = ["server-1", "server-2"] }
  }

  expect_failures = [data.openstack_compute_instances_v2.lost]
}

run "two_ports_stop_it" {
  command = plan

  override_data {
    target = data.openstack_compute_instances_v2.lost
    values = { ids = [] }
  }
  override_data {
    target = data.openstack_networking_ports_v2.lost
    values = { ids = ["port-1", "port-2"] }
  }

  expect_failures = [data.openstack_networking_ports_v2.lost]
}
