# Runs with the files of inventory/ beside the module's.
mock_provider "google" {}

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

run "lists_instances" {
  command = plan

  override_data {
    target = data.google_cloud_asset_search_all_resources.inventory
    values = {
      results = [
        {
          name         = "//compute.googleapis.com/projects/my-project/zones/us-central1-b/instances/a"
          create_time  = "2026-01-01T00:00:00Z"
          labels       = { "kubernetes-io-cluster-demo-x7k2p" = "owned", "machine-iac-io-machine-uid" = "u", "machine-iac-io-installation" = "i" }
          asset_type   = "compute.googleapis.com/Instance", description = "", display_name = "a", folders = [], kms_keys = [], location = "us-central1-b", network_tags = []
          organization = "", parent_asset_type = "", parent_full_resource_name = "", project = "projects/1", state = "RUNNING", update_time = ""
        },
        {
          name         = "//compute.googleapis.com/projects/my-project/zones/us-central1-b/instances/b"
          create_time  = "2026-01-01T00:00:00Z"
          labels       = { "kubernetes-io-cluster-demo-x7k2p" = "shared" }
          asset_type   = "compute.googleapis.com/Instance", description = "", display_name = "b", folders = [], kms_keys = [], location = "us-central1-b", network_tags = []
          organization = "", parent_asset_type = "", parent_full_resource_name = "", project = "projects/1", state = "RUNNING", update_time = ""
        },
      ]
    }
  }
  assert {
    condition     = data.google_cloud_asset_search_all_resources.inventory.query == "labels.kubernetes-io-cluster-demo-x7k2p=owned"
    error_message = "Instances of other clusters are not asked for."
  }
  assert {
    condition     = output.inventory == [{ provider_id = "gce://my-project/us-central1-b/a", name = "a", created = "2026-01-01T00:00:00Z", machine_uid = "u", installation = "i" }]
    error_message = "Every instance is listed, with the UID of its Machine."
  }
  assert {
    condition     = google_compute_instance.this.labels["machine-iac-io-installation"] == "c0ffee00-0000-4000-8000-000000000001"
    error_message = "What is made bears the UID of the installation."
  }
}
