mock_provider "aws" {
  mock_data "aws_subnets" {
    defaults = { ids = ["subnet-0a"] }
  }
}

# Each run breaks one check. Plans go on all the same.
variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  provider_spec = {
    ami                = { id = "ami-0123456789abcdef0" }
    instanceType       = "m5.large"
    placement          = { region = "us-east-1" }
    subnet             = { id = "subnet-0123456789abcdef0" }
    iamInstanceProfile = { id = "demo-worker-profile" }
    credentialsSecret  = { name = "aws-cloud-credentials" }
    userDataSecret     = { name = "worker-user-data" }
  }
  user_data = ""
}

run "warns_of_no_subnet" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [check.subnet]
}

run "warns_of_a_subnet_by_arn" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { arn = "arn:aws:ec2:us-east-1:123456789012:subnet/subnet-0" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  assert {
    condition     = length(data.aws_subnets.found[0].filter) == 0
    error_message = "An ARN names no subnet here."
  }

  expect_failures = [check.subnet_arn]
}

run "warns_of_filters_beside_a_subnet" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { id = "subnet-0", filters = [{ name = "tag:Name", values = ["demo"] }] }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  assert {
    condition     = aws_instance.this.subnet_id == "subnet-0" && length(data.aws_subnets.found) == 0
    error_message = "The id counts."
  }

  expect_failures = [check.subnet_filters]
}

run "warns_of_no_instance_profile" {
  command = plan

  variables {
    provider_spec = {
      ami               = { id = "ami-0123456789abcdef0" }
      instanceType      = "m5.large"
      placement         = { region = "us-east-1" }
      subnet            = { id = "subnet-0123456789abcdef0" }
      credentialsSecret = { name = "aws-cloud-credentials" }
      userDataSecret    = { name = "worker-user-data" }
    }
  }

  expect_failures = [check.instance_profile]
}

run "warns_of_an_instance_profile_of_nothing" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      iamInstanceProfile = {}
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [check.instance_profile]
}

run "warns_of_an_instance_profile_by_arn" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      iamInstanceProfile = { arn = "arn:aws:iam::123456789012:instance-profile/demo" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  expect_failures = [check.instance_profile_arn]
}

run "warns_of_filters_of_an_instance_profile" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      iamInstanceProfile = { id = "demo-worker-profile", filters = [{ name = "tag:Name", values = ["demo"] }] }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  assert {
    condition     = aws_instance.this.iam_instance_profile == "demo-worker-profile"
    error_message = "The name counts."
  }

  expect_failures = [check.instance_profile_filters]
}

run "warns_of_an_image_by_arn" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0", arn = "arn:aws:ec2:us-east-1::image/ami-1" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  assert {
    condition     = aws_instance.this.ami == "ami-0"
    error_message = "The id counts."
  }

  expect_failures = [check.image_arn]
}

run "warns_of_filters_of_an_image" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0", filters = [{ name = "tag:Name", values = ["demo"] }] }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
    }
  }

  assert {
    condition     = aws_instance.this.ami == "ami-0"
    error_message = "The id counts."
  }

  expect_failures = [check.image_filters]
}

run "warns_of_a_security_group_by_two_names" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      securityGroups     = [{ id = "sg-0", filters = [{ name = "tag:Name", values = ["demo"] }] }]
    }
  }

  assert {
    condition     = aws_instance.this.vpc_security_group_ids == toset(["sg-0"])
    error_message = "The id counts."
  }

  expect_failures = [check.security_groups]
}

run "warns_of_a_security_group_by_arn" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      securityGroups     = [{ id = "sg-0", arn = "arn:aws:ec2:us-east-1:123456789012:security-group/sg-1" }]
    }
  }

  expect_failures = [check.security_groups]
}

run "warns_of_tags_that_are_given_twice" {
  command = plan

  variables {
    provider_spec = {
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement          = { region = "us-east-1" }
      subnet             = { id = "subnet-0123456789abcdef0" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      tags               = [{ name = "a", value = "1" }, { name = "b" }, { name = "a", value = "2" }]
    }
  }

  assert {
    condition     = aws_instance.this.tags["a"] == "1"
    error_message = "The first counts."
  }

  expect_failures = [check.tags]
}

run "warns_of_a_security_group_of_nothing" {
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
      securityGroups     = [{ id = "sg-0a" }, {}, { filters = [] }]
    }
  }

  assert {
    condition     = aws_instance.this.vpc_security_group_ids == toset(["sg-0a"]) && length(data.aws_security_groups.found) == 0
    error_message = "The others count."
  }

  expect_failures = [check.security_group_names]
}

run "warns_of_a_placement_group_on_a_host" {
  command = plan

  variables {
    provider_spec = {
      instanceType            = "m5.large"
      iamInstanceProfile      = { id = "demo-worker-profile" }
      subnet                  = { id = "subnet-0123456789abcdef0" }
      ami                     = { id = "ami-0123456789abcdef0" }
      credentialsSecret       = { name = "aws-cloud-credentials" }
      userDataSecret          = { name = "worker-user-data" }
      placement               = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "host", host = { affinity = "AnyAvailable" } }
      placementGroupName      = "group"
      placementGroupPartition = 2
    }
  }

  assert {
    condition     = aws_instance.this.placement_group != "group" && aws_instance.this.placement_partition_number != 2
    error_message = "The host counts."
  }

  expect_failures = [check.placement_group]
}

run "warns_of_an_application_load_balancer" {
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
      loadBalancers      = [{ name = "a", type = "application" }, { name = "b" }]
    }
  }

  assert {
    condition     = length(aws_elb_attachment.classic) == 0 && length(data.aws_resourcegroupstaggingapi_resources.target_groups) == 0
    error_message = "Nothing is looked for."
  }

  expect_failures = [check.load_balancers]
}

run "warns_of_a_device_without_a_volume" {
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
      blockDevices       = [{ deviceName = "/dev/sdb" }, { ebs = { volumeSize = 120 } }]
    }
  }

  assert {
    condition     = length(aws_instance.this.ebs_block_device) == 0 && one(aws_instance.this.root_block_device).volume_size == 120
    error_message = "It makes nothing."
  }

  expect_failures = [check.volumes]
}

run "warns_of_a_device_of_the_host" {
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
      blockDevices       = [{ deviceName = "/dev/sdb", virtualName = "ephemeral0", ebs = { volumeSize = 50 } }]
    }
  }

  assert {
    condition     = one(aws_instance.this.ebs_block_device).volume_size == 50
    error_message = "The volume counts."
  }

  expect_failures = [check.volumes]
}

run "warns_of_a_volume_that_should_stay" {
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
      blockDevices       = [{ ebs = { deleteOnTermination = false } }]
    }
  }

  assert {
    condition     = one(aws_instance.this.root_block_device).delete_on_termination
    error_message = "It is deleted with the instance."
  }

  expect_failures = [check.volumes]
}

run "warns_of_operations_of_a_volume_that_has_none" {
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
      blockDevices       = [{ ebs = { volumeType = "gp2", iops = 3000 } }]
    }
  }

  assert {
    condition     = one(aws_instance.this.root_block_device).iops != 3000 && one(aws_instance.this.root_block_device).volume_type == "gp2"
    error_message = "They are not sent."
  }

  expect_failures = [check.volumes]
}

run "warns_of_throughput_of_an_unknown_type" {
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
      blockDevices       = [{ ebs = { throughputMib = 250 } }]
    }
  }

  assert {
    condition     = one(aws_instance.this.root_block_device).throughput != 250
    error_message = "It is not sent."
  }

  expect_failures = [check.volumes]
}

run "warns_of_a_key_by_two_names" {
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
      blockDevices       = [{ ebs = { kmsKey = { id = "k", arn = "arn:aws:kms:us-east-1:123456789012:key/k" } } }]
    }
  }

  assert {
    condition     = one(aws_instance.this.root_block_device).kms_key_id == "k"
    error_message = "The id counts."
  }

  expect_failures = [check.volumes]
}
