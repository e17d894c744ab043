mock_provider "openstack" {
  mock_data "openstack_networking_secgroups_v2" {
    defaults = { ids = ["group-1"] }
  }
}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  user_data = ""
}

run "warns_of_an_image_beside_that_of_the_root_volume" {
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

  expect_failures = [check.ignored]
}

run "warns_of_a_root_volume_without_a_size" {
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

  expect_failures = [check.ignored]
}

run "warns_of_a_volume_of_local_storage" {
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

  expect_failures = [check.ignored]
}

run "warns_of_a_network_that_is_not_named" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ portTags = ["a"] }, { uuid = "n" }]
    }
  }

  expect_failures = [check.ignored]
}

run "warns_of_a_filter_beside_the_id_of_a_network" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n", filter = { name = "nodes" } }]
    }
  }

  expect_failures = [check.ignored]
}

run "warns_of_a_filter_beside_the_id_of_a_subnet" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n", subnets = [{ uuid = "s", filter = { ipVersion = 6 } }] }]
    }
  }

  expect_failures = [check.ignored]
}

run "warns_of_a_name_beside_the_id_of_a_security_group" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret   = { name = "c" }
      cloudName      = "openstack"
      flavor         = "m1.large"
      image          = "rhcos"
      networks       = [{ uuid = "n" }]
      securityGroups = [{ uuid = "g", name = "worker" }]
    }
  }

  expect_failures = [check.ignored]
}

run "warns_of_a_profile_that_openshift_does_not_know" {
  command = plan

  variables {
    provider_spec = {
      cloudsSecret = { name = "c" }
      cloudName    = "openstack"
      flavor       = "m1.large"
      image        = "rhcos"
      networks     = [{ uuid = "n", profile = { capabilities = "switchdev", physical_network = "radio" } }]
    }
  }

  expect_failures = [check.ignored]
}

run "warns_of_security_groups_of_a_port_without_security" {
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

  expect_failures = [check.ignored]
}

run "warns_of_a_security_group_that_is_not_named" {
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

  expect_failures = [check.unusual]
}

run "warns_of_a_zone_with_spaces" {
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

  expect_failures = [check.unusual]
}
