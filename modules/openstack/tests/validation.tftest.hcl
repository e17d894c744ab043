mock_provider "openstack" {}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  provider_spec = {
    cloudsSecret = { name = "c" }
    cloudName    = "openstack"
    flavor       = "m1.large"
    image        = "rhcos"
    networks     = [{ uuid = "n" }]
  }
  user_data = ""
}

run "refuses_no_credentials" {
  command = plan

  variables {
    provider_spec = {
      cloudName = "openstack"
      flavor    = "m1.large"
      image     = "rhcos"
      networks  = [{ uuid = "n" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_cloud" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_user_data_without_a_name" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret   = { name = "c" }
      cloudName      = "openstack"
      flavor         = "m1.large"
      image          = "rhcos"
      networks       = [{ uuid = "n" }]
      userDataSecret = { namespace = "openshift-machine-api" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_secret_of_another_namespace" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c", namespace = "elsewhere" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_flavor" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_image" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      networks     = [{ uuid = "n" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_root_volume_of_half_a_gibibyte" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      rootVolume   = { diskSize = 1.5 }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_block_device_called_as_the_root_volume_is" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret           = { name = "c" }
      cloudName              = "openstack"
      flavor                 = "m1.large"
      image                  = "rhcos"
      networks               = [{ uuid = "n" }]
      additionalBlockDevices = [{ name = "root", sizeGiB = 1, storage = { type = "Local" } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_block_device_of_half_a_gibibyte" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret           = { name = "c" }
      cloudName              = "openstack"
      flavor                 = "m1.large"
      image                  = "rhcos"
      networks               = [{ uuid = "n" }]
      additionalBlockDevices = [{ name = "etcd", sizeGiB = 0.5, storage = { type = "Local" } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_network" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ portTags = ["a"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_port_of_no_network" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      ports        = [{ nameSuffix = "storage" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_port_that_is_called_by_a_number" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      ports        = [{ networkID = "n", nameSuffix = "0" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_description_without_room_for_the_uid" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      ports        = [{ networkID = "n", description = format("%0201d", 0) }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_address_pair_without_an_address" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      ports        = [{ networkID = "n", allowedAddressPairs = [{ macAddress = "fa:16:3e:00:00:01" }] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_floating_ip_that_is_a_name" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      floatingIP   = "api.example.com"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_tag_with_a_slash" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      tags         = ["kubernetes.io/cluster/demo"]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_type_of_block_device_that_nobody_knows" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret           = { name = "c" }
      cloudName              = "openstack"
      flavor                 = "m1.large"
      image                  = "rhcos"
      networks               = [{ uuid = "n" }]
      additionalBlockDevices = [{ name = "etcd", sizeGiB = 1, storage = {} }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_tag_of_a_port_with_a_comma" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n", portTags = ["a,b"] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_metadata_key_with_a_slash" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret   = { name = "c" }
      cloudName      = "openstack"
      flavor         = "m1.large"
      image          = "rhcos"
      networks       = [{ uuid = "n" }]
      serverMetadata = { "kubernetes.io/cluster" = "demo" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_user_data_than_openstack_takes" {
  command = plan

  variables {
    user_data = format("%050000d", 0)
  }

  expect_failures = [var.user_data]
}
