mock_provider "aws" {}

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
    condition     = local.subnet_id == null
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
