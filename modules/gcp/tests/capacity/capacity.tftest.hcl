# Runs with the files of capacity/ beside the module's.
mock_provider "google" {
  mock_resource "google_compute_instance" {
    defaults = {
      instance_id    = "1234567890123456789"
      current_status = "RUNNING"
      self_link      = "https://www.googleapis.com/compute/v1/projects/my-project/zones/us-central1-a/instances/demo-x7k2p-worker-a-abcde"
    }
  }
}

variables {
  machine = {
    name       = "demo-x7k2p-worker-a-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = {}
  }
  # As OpenShift's installer writes it for a worker.
  provider_spec = {
    canIPForward       = false
    credentialsSecret  = { name = "gcp-cloud-credentials" }
    deletionProtection = false
    disks = [{
      autoDelete = true, boot = true, sizeGb = 128, type = "pd-ssd", labels = {}
      image      = "projects/rhcos-cloud/global/images/rhcos-9-6-gcp-x86-64"
    }]
    machineType            = "n2-standard-4"
    networkInterfaces      = [{ network = "demo-x7k2p-network", subnetwork = "demo-x7k2p-worker-subnet" }]
    projectID              = "my-project"
    region                 = "us-central1"
    serviceAccounts        = [{ email = "demo-x7k2p-w@my-project.iam.gserviceaccount.com", scopes = ["https://www.googleapis.com/auth/cloud-platform"] }]
    shieldedInstanceConfig = {}
    tags                   = ["demo-x7k2p-worker"]
    userDataSecret         = { name = "worker-user-data" }
    zone                   = "us-central1-a"
  }
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "reads_the_size_of_the_machine_type" {
  command = plan

  override_data {
    target = data.google_compute_machine_types.capacity
    values = { machine_types = [{ name = "a2-highgpu-1g", description = "", self_link = "", deprecated = [], is_shared_cpus = false, maximum_persistent_disks = 128, maximum_persistent_disks_size_gb = 263168, guest_cpus = 12, memory_mb = 87040, accelerators = [{ guest_accelerator_type = "nvidia-tesla-a100", guest_accelerator_count = 1 }] }] }
  }
  assert {
    condition     = data.google_compute_machine_types.capacity.filter == "name = ${var.provider_spec.machineType}" && data.google_compute_machine_types.capacity.zone == var.provider_spec.zone
    error_message = "The machine type is that of the zone."
  }
  assert {
    condition     = output.capacity == { cpu = 12, memory_mib = 87040, gpu = 1, architecture = "amd64" }
    error_message = "The size is the machine type's."
  }
}

run "knows_types_of_arm" {
  command = plan

  override_data {
    target = data.google_compute_machine_types.capacity
    values = { machine_types = [{ name = "c4a-standard-1", description = "", self_link = "", deprecated = [], is_shared_cpus = false, maximum_persistent_disks = 16, maximum_persistent_disks_size_gb = 263168, guest_cpus = 1, memory_mb = 4096, accelerators = [] }] }
  }
  assert {
    condition     = output.capacity == { cpu = 1, memory_mib = 4096, gpu = 0, architecture = "arm64" }
    error_message = "The data source has no architecture."
  }
}

run "refuses_a_machine_type_that_the_zone_lacks" {
  command = plan

  override_data {
    target = data.google_compute_machine_types.capacity
    values = { machine_types = [] }
  }

  expect_failures = [data.google_compute_machine_types.capacity]
}
