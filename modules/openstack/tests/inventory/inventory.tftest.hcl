# Runs with the files of inventory/ beside the module's.
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
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "lists_servers" {
  command = plan

  override_data {
    target = data.openstack_compute_instances_v2.inventory
    values = { ids = ["server-1", "server-2"], servers = ["{\"id\":\"server-1\",\"name\":\"a\",\"metadata\":{\"openshiftClusterID\":\"demo-x7k2p\",\"machine-iac.io_machine-uid\":\"u\",\"machine-iac.io_installation\":\"i\"},\"tags\":[],\"status\":\"ACTIVE\",\"image_id\":\"\",\"key_name\":\"\",\"availability_zone\":\"nova\",\"flavor_name\":\"m1.xlarge\",\"created\":\"2026-01-01T00:00:00Z\"}", "{\"id\":\"server-2\",\"name\":\"b\",\"metadata\":{\"openshiftClusterID\":\"demo-x7k2p\"},\"tags\":[],\"status\":\"ACTIVE\",\"image_id\":\"\",\"key_name\":\"\",\"availability_zone\":\"nova\",\"flavor_name\":\"m1.xlarge\",\"created\":\"2026-01-01T00:00:00Z\"}"] }
  }
  assert {
    condition     = data.openstack_compute_instances_v2.inventory.metadata == tomap({ openshiftClusterID = "demo-x7k2p" })
    error_message = "Servers of other clusters are not asked for."
  }
  assert {
    condition = output.inventory == [
      { provider_id = "openstack:///server-1", name = "a", created = "2026-01-01T00:00:00Z", machine_uid = "u", installation = "i" },
      { provider_id = "openstack:///server-2", name = "b", created = "2026-01-01T00:00:00Z", machine_uid = "", installation = "" },
    ]
    error_message = "Every server is listed, with the UID of its Machine where it has one."
  }
  assert {
    condition = (
      openstack_compute_instance_v2.this.metadata["machine-iac.io_installation"] == "c0ffee00-0000-4000-8000-000000000001"
      && alltrue([for port in openstack_networking_port_v2.interface : startswith(port.description, "Installation c0ffee00-0000-4000-8000-000000000001, Machine ")])
    )
    error_message = "What is made bears the UID of the installation."
  }
}
