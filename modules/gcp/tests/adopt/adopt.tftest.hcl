# Runs with the files of adopt/ beside the module's. The engine cannot mock an import, so this is what is refused.
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
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
  adopt = {
    provider_id = "gce://my-project/us-central1-a/demo-x7k2p-worker-a-abcde"
    id          = ""
  }
}

run "another_cluster_s_instance_is_not_adopted" {
  command = plan

  override_data {
    target = data.google_compute_instance.adopted
    values = { labels = { "kubernetes-io-cluster-other" = "owned" } }
  }

  expect_failures = [data.google_compute_instance.adopted]
}

run "an_instance_of_another_name_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = "gce://my-project/us-central1-a/other"
      id          = ""
    }
  }


  expect_failures = [data.google_compute_instance.adopted]
}

run "an_instance_of_another_project_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = "gce://other/us-central1-a/demo-x7k2p-worker-a-abcde"
      id          = ""
    }
  }


  expect_failures = [data.google_compute_instance.adopted]
}

run "what_is_no_instance_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = ""
      id          = "projects/my-project/zones/us-central1-a/disks/x"
    }
  }


  expect_failures = [data.google_compute_instance.adopted]
}
