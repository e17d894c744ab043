# What the controller of OpenShift does with less common providerSpecs.
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

run "runs_the_user_data_of_windows" {
  command = plan

  variables {
    machine = {
      name       = "worker-1"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = { "machine.openshift.io/os-id" = "Windows" }
    }
    user_data = "<powershell>Write-Host</powershell>\n<persist>true</persist>"
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
  }

  assert {
    condition     = nonsensitive(google_compute_instance.this.metadata) == tomap({ "sysprep-specialize-script-ps1" = "Write-Host" })
    error_message = "Windows runs the script, without the marks around it."
  }
}

run "leaves_a_script_of_windows_alone_that_is_not_marked" {
  command = plan

  variables {
    machine = {
      name       = "worker-1"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = { "machine.openshift.io/os-id" = "Windows" }
    }
    user_data = "<powershell>Write-Host"
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
  }

  assert {
    condition     = nonsensitive(google_compute_instance.this.metadata) == tomap({ "sysprep-specialize-script-ps1" = "<powershell>Write-Host" })
    error_message = "Half a mark is a part of the script."
  }
}

run "takes_metadata_in_place_of_the_user_data" {
  command = plan

  variables {
    user_data = "{}"
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      gcpMetadata       = [{ key = "user-data", value = "mine" }]
    }
  }

  assert {
    condition     = nonsensitive(google_compute_instance.this.metadata) == tomap({ "user-data" = "mine" })
    error_message = "Metadata of that key counts."
  }
}

run "takes_an_image_by_its_address" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "https://www.googleapis.com/compute/v1/projects/redhat-marketplace-public/global/images/redhat-coreos-ocp-413-x86-64" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  assert {
    condition     = google_compute_instance.this.boot_disk[0].initialize_params[0].image == "https://www.googleapis.com/compute/v1/projects/redhat-marketplace-public/global/images/redhat-coreos-ocp-413-x86-64"
    error_message = "The address is the image's."
  }
}

run "takes_the_newest_image_of_a_family" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "projects/rhcos-cloud/global/images/family/rhcos" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  assert {
    condition     = google_compute_instance.this.boot_disk[0].initialize_params[0].image == "projects/rhcos-cloud/global/images/family/rhcos"
    error_message = "The family is the image's."
  }
}

run "boots_the_image_of_openshift_4_14_without_an_image" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  assert {
    condition     = google_compute_instance.this.boot_disk[0].initialize_params[0].image == "projects/rhcos-cloud/global/images/rhcos-414-92-202307070025-0-gcp-x86-64"
    error_message = "It is the image that the Machine API Operator fills in."
  }

  expect_failures = [check.disks]
}

run "boots_an_image_of_its_architecture" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "t2a-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  assert {
    condition     = google_compute_instance.this.boot_disk[0].initialize_params[0].image == "projects/rhcos-cloud/global/images/rhcos-414-92-202307070025-0-gcp-aarch64"
    error_message = "An instance of arm64 cannot boot the other."
  }

  expect_failures = [check.disks]
}

run "makes_a_blank_disk_of_the_size_that_google_chooses" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, image = "i" }, { autoDelete = true }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  assert {
    condition     = google_compute_disk.data["worker-1-1"].image == null && local.data_disks["worker-1-1"].sizeGb == null
    error_message = "It has neither image nor size."
  }
}

run "leaves_a_boot_disk_that_should_stay" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = false, image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  assert {
    condition     = google_compute_instance.this.boot_disk[0].auto_delete == false
    error_message = "It stays when the instance is deleted."
  }

  expect_failures = [check.disks]
}

run "leaves_a_data_disk_that_should_stay" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, image = "i" }, { sizeGb = 16 }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  assert {
    condition     = { for name, disk in google_compute_disk.data : name => disk.deletion_policy if disk.deletion_policy == "ABANDON" } == { "worker-1-1" = "ABANDON" }
    error_message = "It is forgotten, not deleted."
  }

  expect_failures = [check.disks]
}

run "encrypts_with_google_s_key_without_a_key" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i", encryptionKey = { kmsKeyServiceAccount = "sa" } }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  assert {
    condition     = local.boot_disk.key == null
    error_message = "There is no key."
  }

  expect_failures = [check.disks]
}

run "protects_from_deletion" {
  command = plan

  variables {
    provider_spec = {
      machineType        = "n1-standard-4"
      credentialsSecret  = { name = "c" }
      userDataSecret     = { name = "u" }
      projectID          = "p"
      region             = "us-central1"
      zone               = "us-central1-a"
      disks              = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts    = [{ email = "e", scopes = ["s"] }]
      deletionProtection = true
    }
  }

  assert {
    condition     = google_compute_instance.this.deletion_protection
    error_message = "It is protected."
  }

  expect_failures = [check.deletion_protection]
}

run "leaves_maintenance_to_google_for_a_preemptible_instance_with_graphics_processors" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      preemptible       = true
      gpus              = [{ type = "nvidia-tesla-t4", count = 1 }]
    }
  }

  assert {
    condition     = google_compute_instance.this.scheduling[0].preemptible && google_compute_instance.this.guest_accelerator[0].type == "nvidia-tesla-t4"
    error_message = "Google ends what may be preempted."
  }
}

run "takes_a_machine_type_with_graphics_processors" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "a2-highgpu-1g"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      onHostMaintenance = "Terminate"
    }
  }

  assert {
    condition     = length(google_compute_instance.this.guest_accelerator) == 0 && google_compute_instance.this.scheduling[0].on_host_maintenance == "TERMINATE"
    error_message = "They come with the machine type."
  }
}

run "shields_the_rest_by_default" {
  command = plan

  variables {
    provider_spec = {
      machineType            = "n1-standard-4"
      credentialsSecret      = { name = "c" }
      userDataSecret         = { name = "u" }
      projectID              = "p"
      region                 = "us-central1"
      zone                   = "us-central1-a"
      disks                  = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts        = [{ email = "e", scopes = ["s"] }]
      shieldedInstanceConfig = { secureBoot = "Enabled" }
    }
  }

  assert {
    condition     = [google_compute_instance.this.shielded_instance_config[0].enable_secure_boot, google_compute_instance.this.shielded_instance_config[0].enable_vtpm, google_compute_instance.this.shielded_instance_config[0].enable_integrity_monitoring] == [true, true, true]
    error_message = "What is not given is enabled."
  }
}

run "takes_the_last_of_a_tag_that_is_given_twice" {
  command = plan

  variables {
    provider_spec = {
      machineType         = "n1-standard-4"
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "p"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      resourceManagerTags = [{ parentID = "1", key = "env", value = "a" }, { parentID = "1", key = "env", value = "b" }, { parentID = "2", key = "env", value = "c" }]
    }
  }

  assert {
    condition     = google_compute_instance.this.params[0].resource_manager_tags == tomap({ "1/env" = "b", "2/env" = "c" })
    error_message = "The last counts, of each parent."
  }
}

run "takes_labels_in_any_language" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      labels            = { größe = "groß" }
    }
  }

  assert {
    condition     = google_compute_instance.this.labels["größe"] == "groß"
    error_message = "International letters are letters."
  }
}

run "has_the_labels_and_tags_of_the_cluster_below_its_own" {
  command = plan

  variables {
    provider_spec = {
      machineType         = "n1-standard-4"
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "p"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i", labels = { team = "disks" } }, { autoDelete = true, sizeGb = 16 }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      labels              = { owner = "mine", kubernetes-io-cluster-demo = "shared" }
      resourceManagerTags = [{ parentID = "1", key = "env", value = "mine" }]
    }
    cluster = {
      resource_labels = { owner = "cluster", team = "cluster" }
      resource_tags   = [{ parent_id = "1", key = "env", value = "cluster" }, { parent_id = "2", key = "env", value = "cluster" }]
    }
  }

  assert {
    condition     = google_compute_instance.this.labels == tomap({ owner = "mine", team = "cluster", kubernetes-io-cluster-demo = "owned", machine-iac-io-machine-uid = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "The cluster's labels are below those of the providerSpec, and OpenShift's above."
  }
  assert {
    condition     = google_compute_instance.this.boot_disk[0].initialize_params[0].labels == tomap({ owner = "cluster", team = "disks", kubernetes-io-cluster-demo = "owned", machine-iac-io-machine-uid = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" }) && google_compute_disk.data["worker-1-1"].labels["team"] == "cluster"
    error_message = "So are those of disks."
  }
  assert {
    condition     = alltrue([for tags in [google_compute_instance.this.params[0].resource_manager_tags, google_compute_instance.this.boot_disk[0].initialize_params[0].resource_manager_tags, google_compute_disk.data["worker-1-1"].params[0].resource_manager_tags] : tags == tomap({ "1/env" = "mine", "2/env" = "cluster" })])
    error_message = "So are tags, by their parents."
  }
}
