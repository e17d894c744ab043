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

run "refuses_no_project" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_region" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_zone_of_another_region" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "europe-west1-b"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_empty_machine_type" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      machineType       = ""
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_user_data" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_credentials" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = {}
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_target_pool" {
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
      targetPools       = ["pool"]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_boot_disk" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_that_is_too_small" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 15, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_type_of_a_disk" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_key_without_a_ring" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i", encryptionKey = { kmsKey = { name = "k", location = "l" } } }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_interface_without_a_subnet" {
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
      networkInterfaces = [{ network = "n" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_service_accounts" {
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
      serviceAccounts   = [{ email = "a", scopes = ["s"] }, { email = "b", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_label_in_capitals" {
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
      labels            = { Team = "a" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_model" {
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
      provisioningModel = "Standard"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_spot_beside_preemptible" {
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
      provisioningModel = "Spot"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_maintenance" {
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
      onHostMaintenance = "Stop"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_restart" {
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
      restartPolicy     = "OnFailure"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_to_restart_what_is_preempted" {
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
      restartPolicy     = "Always"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_name_that_no_instance_has" {
  command = plan

  variables {
    machine = {
      name       = "worker.1"
      namespace  = "openshift-machine-api"
      uid        = ""
      cluster_id = "demo"
      labels     = {}
    }
  }

  expect_failures = [var.machine]
}

run "refuses_more_user_data_than_google_takes" {
  command = plan

  variables {
    user_data = format("%262145s", "")
  }

  expect_failures = [var.user_data]
}

run "refuses_a_disk_that_is_too_large" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 65537, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_interface_without_a_network" {
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
      networkInterfaces = [{ subnetwork = "s" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_metadata_that_is_given_twice" {
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
      gcpMetadata       = [{ key = "a", value = "x" }, { key = "a", value = "y" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_s_label_in_capitals" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i", labels = { Team = "a" } }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_tags_than_a_resource_has" {
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
      resourceManagerTags = [for key in range(51) : { parentID = "1", key = tostring(key), value = "v" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_tags_than_a_resource_has_with_the_cluster_s" {
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
      resourceManagerTags = [for key in range(50) : { parentID = "1", key = tostring(key), value = "v" }]
    }
    cluster = { resource_tags = [{ parent_id = "1", key = "other", value = "v" }] }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_labels_than_openshift_allows" {
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
      labels            = { for key in range(32) : "label-${key}" => "v" }
    }
    cluster = { resource_labels = { owner = "cluster" } }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_project_that_leads_elsewhere" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p/../../projects/other"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_region_that_leads_elsewhere" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1/.."
      zone              = "us-central1/../zones/z"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_network_of_a_project_that_leads_elsewhere" {
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
      networkInterfaces = [{ network = "n", subnetwork = "s", projectID = "p?x" }]
    }
  }

  expect_failures = [var.provider_spec]
}
