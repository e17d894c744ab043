mock_provider "aws" {}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  provider_spec = {
    instanceType       = "m5.large"
    iamInstanceProfile = { id = "demo-worker-profile" }
    subnet             = { id = "subnet-0123456789abcdef0" }
    ami                = { id = "ami-0123456789abcdef0" }
    placement          = { region = "us-east-1" }
    credentialsSecret  = { name = "aws-cloud-credentials" }
    userDataSecret     = { name = "worker-user-data" }
  }
  user_data = ""
}

run "refuses_no_image" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = {}
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_empty_instance_type" {
  command = plan

  variables {
    provider_spec = {
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      instanceType       = ""
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_region" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { availabilityZone = "us-east-1a" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_user_data_secret" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_credentials_secret" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_empty_name_of_the_user_data_secret" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = {}
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_empty_name_of_the_credentials_secret" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      userDataSecret     = { name = "worker-user-data" }
      credentialsSecret  = { name = "" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_tag_without_a_name" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      tags               = [{ name = "", value = "a" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_tags_than_an_instance_has" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      tags               = [for number in range(47) : { name = "tag-${number}" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_empty_cpu_options" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      cpuOptions         = {}
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_way_of_confidential_computing" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      cpuOptions         = { confidentialCompute = "Enabled" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_authentication" {
  command = plan

  variables {
    provider_spec = {
      instanceType           = "m5.large"
      iamInstanceProfile     = { id = "demo-worker-profile" }
      subnet                 = { id = "subnet-0123456789abcdef0" }
      ami                    = { id = "ami-0123456789abcdef0" }
      placement              = { region = "us-east-1" }
      credentialsSecret      = { name = "aws-cloud-credentials" }
      userDataSecret         = { name = "worker-user-data" }
      metadataServiceOptions = { authentication = "required" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_market" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      marketType         = "spot"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_spot_options_of_an_on_demand_instance" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      marketType         = "OnDemand"
      spotMarketOptions  = {}
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_price_that_is_none" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      spotMarketOptions  = { maxPrice = "$0.05" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_reservation_of_another_form" {
  command = plan

  variables {
    provider_spec = {
      instanceType          = "m5.large"
      iamInstanceProfile    = { id = "demo-worker-profile" }
      subnet                = { id = "subnet-0123456789abcdef0" }
      ami                   = { id = "ami-0123456789abcdef0" }
      placement             = { region = "us-east-1" }
      credentialsSecret     = { name = "aws-cloud-credentials" }
      userDataSecret        = { name = "worker-user-data" }
      capacityReservationId = "cr-0123456789ABCDEF0"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_reservation_for_a_spot_instance" {
  command = plan

  variables {
    provider_spec = {
      instanceType          = "m5.large"
      iamInstanceProfile    = { id = "demo-worker-profile" }
      subnet                = { id = "subnet-0123456789abcdef0" }
      ami                   = { id = "ami-0123456789abcdef0" }
      placement             = { region = "us-east-1" }
      credentialsSecret     = { name = "aws-cloud-credentials" }
      userDataSecret        = { name = "worker-user-data" }
      capacityReservationId = "cr-0123456789abcdef0"
      spotMarketOptions     = {}
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_capacity_block_without_a_reservation" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      marketType         = "CapacityBlock"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_tenancy" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", tenancy = "shared" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_host_of_another_tenancy" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", tenancy = "dedicated", host = { affinity = "AnyAvailable" } }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_affinity" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = {} }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_affinity_to_no_host" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "DedicatedHost" } }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_strategy" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "DedicatedHost", dedicatedHost = { allocationStrategy = "Static", id = "h-01234567" } } }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_host_of_another_form" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "DedicatedHost", dedicatedHost = { id = "h-0123" } } }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_the_id_of_a_host_that_is_yet_to_be" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "DedicatedHost", dedicatedHost = { allocationStrategy = "Dynamic", id = "h-01234567" } } }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_to_leave_a_host_of_its_own" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "AnyAvailable", dedicatedHost = { allocationStrategy = "Dynamic" } } }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_tags_for_a_host_that_is_there" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "DedicatedHost", dedicatedHost = { id = "h-01234567", dynamicHostAllocation = { tags = [{ name = "a" }] } } } }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_allocation_without_tags" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "DedicatedHost", dedicatedHost = { allocationStrategy = "Dynamic", dynamicHostAllocation = {} } } }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_partition_that_no_group_has" {
  command = plan

  variables {
    provider_spec = {
      instanceType            = "m5.large"
      iamInstanceProfile      = { id = "demo-worker-profile" }
      subnet                  = { id = "subnet-0123456789abcdef0" }
      ami                     = { id = "ami-0123456789abcdef0" }
      placement               = { region = "us-east-1" }
      credentialsSecret       = { name = "aws-cloud-credentials" }
      userDataSecret          = { name = "worker-user-data" }
      placementGroupName      = "group"
      placementGroupPartition = 8
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_partition_of_no_group" {
  command = plan

  variables {
    provider_spec = {
      instanceType            = "m5.large"
      iamInstanceProfile      = { id = "demo-worker-profile" }
      subnet                  = { id = "subnet-0123456789abcdef0" }
      ami                     = { id = "ami-0123456789abcdef0" }
      placement               = { region = "us-east-1" }
      credentialsSecret       = { name = "aws-cloud-credentials" }
      userDataSecret          = { name = "worker-user-data" }
      placementGroupPartition = 7
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_second_device_index" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      deviceIndex        = 1
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_type_of_network_interface" {
  command = plan

  variables {
    provider_spec = {
      instanceType         = "m5.large"
      iamInstanceProfile   = { id = "demo-worker-profile" }
      subnet               = { id = "subnet-0123456789abcdef0" }
      ami                  = { id = "ami-0123456789abcdef0" }
      placement            = { region = "us-east-1" }
      credentialsSecret    = { name = "aws-cloud-credentials" }
      userDataSecret       = { name = "worker-user-data" }
      networkInterfaceType = "efa"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_filter_without_values" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      securityGroups     = [{ filters = [{ name = "tag:Name" }] }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_filter_of_subnets_without_values" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      subnet             = { filters = [{ name = "tag:Name" }] }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_root_volumes" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      blockDevices       = [{ ebs = { volumeSize = 120 } }, { ebs = { volumeSize = 120 } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_volumes_of_one_name" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      blockDevices       = [{ deviceName = "/dev/xvdb", ebs = {} }, { deviceName = "/dev/xvdb", ebs = {} }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_volume_type" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      blockDevices       = [{ ebs = { volumeType = "ssd" } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_volume_without_size" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      blockDevices       = [{ ebs = { volumeSize = 0 } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_throughput_of_a_volume_that_has_none" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      blockDevices       = [{ ebs = { volumeType = "gp2", throughputMib = 250 } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_too_little_throughput" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      blockDevices       = [{ ebs = { volumeType = "gp3", throughputMib = 124 } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_spot_options_of_a_capacity_block" {
  command = plan

  variables {
    provider_spec = {
      instanceType          = "m5.large"
      iamInstanceProfile    = { id = "demo-worker-profile" }
      subnet                = { id = "subnet-0123456789abcdef0" }
      ami                   = { id = "ami-0123456789abcdef0" }
      placement             = { region = "us-east-1" }
      credentialsSecret     = { name = "aws-cloud-credentials" }
      userDataSecret        = { name = "worker-user-data" }
      marketType            = "CapacityBlock"
      capacityReservationId = "cr-0123456789abcdef0"
      spotMarketOptions     = {}
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_reservation_in_the_market_of_spot" {
  command = plan

  variables {
    provider_spec = {
      instanceType          = "m5.large"
      iamInstanceProfile    = { id = "demo-worker-profile" }
      subnet                = { id = "subnet-0123456789abcdef0" }
      ami                   = { id = "ami-0123456789abcdef0" }
      placement             = { region = "us-east-1" }
      credentialsSecret     = { name = "aws-cloud-credentials" }
      userDataSecret        = { name = "worker-user-data" }
      marketType            = "Spot"
      capacityReservationId = "cr-0123456789abcdef0"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_affinity_to_something_else" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "Host" } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_host_without_an_id" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "AnyAvailable", dedicatedHost = {} } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_tags_than_a_host_has" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "DedicatedHost", dedicatedHost = { allocationStrategy = "Dynamic", dynamicHostAllocation = { tags = [for n in range(51) : { name = "tag-${n}" }] } } } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_load_balancer_without_a_name" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      loadBalancers      = [{ type = "network" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_machine_of_the_control_plane_on_a_host" {
  command = plan

  variables {
    machine = {
      name       = "master-0"
      namespace  = "openshift-machine-api"
      uid        = ""
      cluster_id = "demo"
      labels     = { "machine.openshift.io/cluster-api-machine-type" = "master" }
    }
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", tenancy = "host" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "master-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_more_user_data_than_ec2_takes" {
  command = plan

  variables {
    user_data = format("%16385s", "")
  }

  expect_failures = [var.user_data]
}

run "refuses_a_region_that_is_a_host" {
  command = plan

  variables {
    provider_spec = {
      instanceType       = "m5.large"
      iamInstanceProfile = { id = "demo-worker-profile" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "elsewhere.example/#" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}
