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
    containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
    credentialsSecret = { name = "kubevirt-credentials" }
  }
  user_data = ""
}

run "refuses_a_machine_name_that_is_too_long_for_a_label" {
  command = plan

  variables {
    machine = {
      name       = "a123456789-123456789-123456789-123456789-123456789-123456789-123"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = {}
    }
  }

  expect_failures = [var.machine]
}

run "refuses_a_cluster_that_cannot_name_a_namespace" {
  command = plan

  variables {
    machine = {
      name       = "worker-1"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "Demo.Cluster"
      labels     = {}
    }
  }

  expect_failures = [var.machine]
}

run "refuses_half_a_core" {
  command = plan

  variables {
    provider_spec = {
      cpu               = 1.5
      containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_memory_that_is_no_quantity" {
  command = plan

  variables {
    provider_spec = {
      memory            = "4 GB"
      containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_run_strategy" {
  command = plan

  variables {
    provider_spec = {
      runStrategy       = "Sometimes"
      containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_vm_without_a_disk" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_vm_with_two_boot_disks" {
  command = plan

  variables {
    provider_spec = {
      dataVolume        = { size = "30Gi", source = { http = { url = "https://example.com/disk.img" } } }
      containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_image_without_a_name" {
  command = plan

  variables {
    provider_spec = {
      containerDisk     = { image = "" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_size_that_is_no_quantity" {
  command = plan

  variables {
    provider_spec = {
      dataVolume        = { size = "big", source = { http = { url = "https://example.com/disk.img" } } }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_without_a_source" {
  command = plan

  variables {
    provider_spec = {
      dataVolume        = { size = "30Gi", source = {} }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_with_two_sources" {
  command = plan

  variables {
    provider_spec = {
      dataVolume        = { size = "30Gi", source = { http = { url = "https://example.com/disk.img" }, pvc = { name = "golden", namespace = "images" } } }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_binding" {
  command = plan

  variables {
    provider_spec = {
      network           = { binding = "slirp" }
      containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_masquerade_beside_the_pod_network" {
  command = plan

  variables {
    provider_spec = {
      network           = { multus = "infra/workers", binding = "masquerade" }
      containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_data_source" {
  command = plan

  variables {
    provider_spec = {
      cloudInit         = "Floppy"
      containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}
