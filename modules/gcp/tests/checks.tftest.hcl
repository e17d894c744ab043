mock_provider "google" {}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  provider_spec = {
    machineType       = "n1-standard-4"
    credentialsSecret = { name = "c" }
    userDataSecret    = { name = "u" }
    projectID         = "p"
    region            = "us-central1"
    zone              = "us-central1-a"
    disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
    serviceAccounts   = [{ email = "e", scopes = ["s"] }]
  }
  user_data = ""
  cluster   = {}
}

run "warns_of_no_service_account_and_takes_what_clients_write_for_nothing" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      machineType       = "n1-standard-4"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 0, type = "", image = "i" }]
      gpus              = [{ count = 0, type = "nvidia-tesla-t4" }]
      onHostMaintenance = "Terminate"
    }
  }

  assert {
    condition     = length(google_compute_instance.this.service_account) == 0 && google_compute_instance.this.guest_accelerator[0].count == 1
    error_message = "There is no service account, and one graphics processor."
  }

  assert {
    condition     = google_compute_instance.this.boot_disk[0].initialize_params[0].type == "pd-standard" && local.boot_disk.sizeGb == null
    error_message = "The disk is a standard one, as large as its image."
  }

  expect_failures = [check.service_account]
}
