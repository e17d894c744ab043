mock_provider "kubectl" {}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  provider_spec = {
    credentialsSecret = { name = "kubemark-credentials" }
  }
  user_data = ""
}

run "refuses_a_name_that_is_too_long_for_a_label" {
  command = plan

  variables {
    machine = {
      name       = "a123456789-123456789-123456789-123456789-123456789-123456789-123"
      namespace  = "openshift-machine-api"
      uid        = ""
      cluster_id = "demo"
      labels     = {}
    }
  }

  expect_failures = [var.machine]
}

run "refuses_no_processors" {
  command = plan

  variables {
    provider_spec = {
      cpu               = 0
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_memory_that_is_no_quantity" {
  command = plan

  variables {
    provider_spec = {
      memory            = "16 GB"
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_half_a_pod" {
  command = plan

  variables {
    provider_spec = {
      pods              = 1.5
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_architecture" {
  command = plan

  variables {
    provider_spec = {
      architecture      = "x86"
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_instance_type_that_is_no_label" {
  command = plan

  variables {
    provider_spec = {
      instanceType      = "hollow large"
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_zone_that_is_no_label" {
  command = plan

  variables {
    provider_spec = {
      zone              = "zone/a"
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_effect" {
  command = plan

  variables {
    provider_spec = {
      taints            = [{ key = "dedicated", effect = "NoRun" }]
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_duration_without_a_unit" {
  command = plan

  variables {
    provider_spec = {
      healthyDuration   = "40"
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_turns_without_a_duration" {
  command = plan

  variables {
    provider_spec = {
      turnUnhealthyPeriodically = true
      healthyDuration           = "40s"
      credentialsSecret         = { name = "kubemark-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}
