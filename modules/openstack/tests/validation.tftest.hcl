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

run "refuses_a_name_that_is_no_hostname" {
  command = plan

  variables {
    machine = {
      name       = "a-name-of-a-machine-that-has-more-characters-than-a-hostname-may-have"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = {}
    }
  }

  expect_failures = [var.machine]
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

run "refuses_two_images" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      rootVolume   = { sourceUUID = "other", diskSize = 10 }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_root_volume_without_a_size" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      rootVolume   = {}
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

run "refuses_half_a_gibibyte" {
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

run "refuses_a_local_block_device_with_a_volume" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret           = { name = "c" }
      cloudName              = "openstack"
      flavor                 = "m1.large"
      image                  = "rhcos"
      networks               = [{ uuid = "n" }]
      additionalBlockDevices = [{ name = "etcd", sizeGiB = 1, storage = { type = "Local", volume = { type = "fast" } } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_zone_with_spaces" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      rootVolume   = { diskSize = 10, availabilityZone = "zone 1" }
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
      networks     = []
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_network_that_is_not_named" {
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

run "refuses_a_subnet_that_is_not_named" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n", subnets = [{ portTags = ["a"] }] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_type_of_interface_that_the_provider_does_not_know" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n", vnicType = "vdpa" }]
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

run "refuses_a_fixed_address_of_no_subnet" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      ports        = [{ networkID = "n", fixedIPs = [{ ipAddress = "192.0.2.7" }] }]
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

run "refuses_security_groups_of_a_port_without_security" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n" }]
      ports        = [{ networkID = "n", portSecurity = false, securityGroups = ["g"] }]
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

run "refuses_a_security_group_that_is_not_named" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret   = { name = "c" }
      cloudName      = "openstack"
      flavor         = "m1.large"
      image          = "rhcos"
      networks       = [{ uuid = "n" }]
      securityGroups = [{ filter = {} }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_names_of_a_server_group" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret    = { name = "c" }
      cloudName       = "openstack"
      flavor          = "m1.large"
      image           = "rhcos"
      networks        = [{ uuid = "n" }]
      serverGroupID   = "g"
      serverGroupName = "demo-worker"
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
