# Graphics processors, confidential computing and how an instance boots: what is refused.
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

run "refuses_two_kinds_of_graphics_processors" {
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
      onHostMaintenance = "Terminate"
      gpus              = [{ type = "nvidia-tesla-t4" }, { type = "nvidia-tesla-p4" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_graphics_processors_of_no_type" {
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
      onHostMaintenance = "Terminate"
      gpus              = [{ count = 1 }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_half_a_graphics_processor" {
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
      onHostMaintenance = "Terminate"
      gpus              = [{ type = "nvidia-tesla-t4", count = 0.5 }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_graphics_processors_beside_those_of_an_a2" {
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
      gpus              = [{ type = "nvidia-tesla-t4" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_graphics_processors_beside_those_of_an_a3" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "a3-highgpu-8g"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      onHostMaintenance = "Terminate"
      gpus              = [{ type = "nvidia-h100-80gb" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_graphics_processors_of_another_machine_type" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n2-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "p"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      onHostMaintenance = "Terminate"
      gpus              = [{ type = "nvidia-tesla-t4" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_graphics_processors_that_only_machine_types_have" {
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
      onHostMaintenance = "Terminate"
      gpus              = [{ type = "nvidia-tesla-a100" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_graphics_processor" {
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
      onHostMaintenance = "Terminate"
      gpus              = [{ type = "nvidia-l4" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_to_move_graphics_processors" {
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
      onHostMaintenance = "Migrate"
      gpus              = [{ type = "nvidia-tesla-t4" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_to_move_the_graphics_processors_of_an_a2" {
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
      onHostMaintenance = "Migrate"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_confidential_computing" {
  command = plan

  variables {
    provider_spec = {
      machineType         = "n2d-standard-4"
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "p"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      onHostMaintenance   = "Terminate"
      confidentialCompute = "SGX"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_to_move_confidential_instances" {
  command = plan

  variables {
    provider_spec = {
      machineType         = "n2d-standard-4"
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "p"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      confidentialCompute = "Enabled"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_machine_type_without_sev" {
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
      onHostMaintenance   = "Terminate"
      confidentialCompute = "AMDEncryptedVirtualization"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_machine_type_without_sev_snp" {
  command = plan

  variables {
    provider_spec = {
      machineType         = "c2d-standard-4"
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "p"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      onHostMaintenance   = "Terminate"
      confidentialCompute = "AMDEncryptedVirtualizationNestedPaging"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_machine_type_without_tdx" {
  command = plan

  variables {
    provider_spec = {
      machineType         = "n2d-standard-4"
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "p"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 128, type = "pd-ssd", image = "i" }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      onHostMaintenance   = "Terminate"
      confidentialCompute = "IntelTrustedDomainExtensions"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_secure_boot" {
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
      shieldedInstanceConfig = { secureBoot = "On" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_monitoring" {
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
      shieldedInstanceConfig = { integrityMonitoring = "On" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_tpm" {
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
      shieldedInstanceConfig = { virtualizedTrustedPlatformModule = "On" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_monitoring_without_a_tpm" {
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
      shieldedInstanceConfig = { virtualizedTrustedPlatformModule = "Disabled" }
    }
  }

  expect_failures = [var.provider_spec]
}
