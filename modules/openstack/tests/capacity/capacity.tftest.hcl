# Runs with the files of capacity/ beside the module's.
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
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

# The mocked flavor has no vcpus and ram, which are arguments too.
run "reads_the_size_of_the_flavor" {
  command = plan

  override_data {
    target = data.openstack_compute_flavor_v2.capacity
    values = { extra_specs = { "resources:VGPU" = "2" } }
  }
  assert {
    condition     = data.openstack_compute_flavor_v2.capacity.name == "m1.xlarge" && output.capacity.gpu == 2
    error_message = "GPUs are those that Placement counts."
  }
}

run "counts_no_gpus_where_the_flavor_has_none" {
  command = plan

  override_data {
    target = data.openstack_compute_flavor_v2.capacity
    values = { extra_specs = {} }
  }
  assert {
    condition     = output.capacity.gpu == 0
    error_message = "Nothing else is counted."
  }
}
