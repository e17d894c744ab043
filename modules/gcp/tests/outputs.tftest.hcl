# What is reported of an instance that is made beside what every instance has.
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
    networkInterfaces      = [{ publicIP = true, network = "demo-x7k2p-network", subnetwork = "demo-x7k2p-worker-subnet" }]
    projectID              = "my-project"
    region                 = "us-central1"
    serviceAccounts        = [{ email = "demo-x7k2p-w@my-project.iam.gserviceaccount.com", scopes = ["https://www.googleapis.com/auth/cloud-platform"] }]
    shieldedInstanceConfig = {}
    tags                   = ["demo-x7k2p-worker"]
    userDataSecret         = { name = "worker-user-data" }
    zone                   = "us-central1-a"
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
  cluster   = {}
}

run "reports_what_may_be_interrupted_and_what_stays" {
  variables {
    machine = {
      name       = "demo-x7k2p-spot-a-abcde"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo-x7k2p"
      labels     = {}
    }
    provider_spec = {
      credentialsSecret = { name = "gcp-cloud-credentials" }
      disks             = [{ boot = true, sizeGb = 128, type = "pd-ssd", image = "i" }, { sizeGb = 16 }, { autoDelete = true, sizeGb = 16 }]
      machineType       = "n2-standard-4"
      projectID         = "my-project"
      provisioningModel = "Spot"
      region            = "us-central1"
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      userDataSecret    = { name = "worker-user-data" }
      zone              = "us-central1-a"
    }
  }

  assert {
    condition     = output.interruptible
    error_message = "A Spot instance may be interrupted."
  }
  assert {
    condition     = length(output.outlives) == 2 && startswith(output.outlives[0], "disk ") && endswith(output.outlives[0], " (boot disk, autoDelete: false)") && output.outlives[1] == "disk demo-x7k2p-spot-a-abcde-1 (autoDelete: false)"
    error_message = "The disks that stay are named."
  }

  expect_failures = [check.disks]
}
