mock_provider "aws" {
  mock_resource "aws_instance" {
    defaults = {
      instance_lifecycle    = ""
      private_ip            = "10.0.1.20"
      private_dns           = ""
      public_ip             = ""
      public_dns            = ""
      ipv6_addresses        = []
      secondary_private_ips = []
    }
  }
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-0123456789abcdef0", latest_version = 1 }
  }
  mock_resource "aws_ec2_host" {
    defaults = { id = "h-0123456789abcdef0" }
  }
}

variables {
  machine = {
    name       = "demo-x7k2p-efa-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = {}
  }
  provider_spec = {
    iamInstanceProfile   = { id = "demo-worker-profile" }
    credentialsSecret    = { name = "aws-cloud-credentials" }
    userDataSecret       = { name = "worker-user-data" }
    ami                  = { id = "ami-0123456789abcdef0" }
    instanceType         = "c5n.18xlarge"
    networkInterfaceType = "EFA"
    placement = {
      region           = "us-east-1"
      availabilityZone = "us-east-1a"
      tenancy          = "host"
      host             = { affinity = "DedicatedHost", dedicatedHost = { allocationStrategy = "Dynamic" } }
    }
    subnet         = { id = "subnet-0a" }
    securityGroups = [{ id = "sg-0a" }]
  }
  user_data = ""
}

run "makes_the_instance_from_its_launch_template_on_its_host" {
  assert {
    condition     = [for template in aws_instance.this.launch_template : [template.id, template.version]] == [["lt-0123456789abcdef0", "1"]]
    error_message = "The instance is made from the launch template."
  }
  assert {
    condition = jsonencode([for place in aws_launch_template.special[0].placement : [place.host_id, place.availability_zone]]) == jsonencode([
      ["h-0123456789abcdef0", null],
    ])
    error_message = "The launch template names the host that was allocated, and no zone, as the subnet has one."
  }
  assert {
    condition     = aws_launch_template.special[0].network_interfaces[0].subnet_id == "subnet-0a" && aws_instance.this.subnet_id != "subnet-0a"
    error_message = "The subnet is the network interface's to name, and EC2 refuses a second one."
  }
  assert {
    condition     = jsonencode(output.addresses) == jsonencode([{ type = "InternalIP", address = "10.0.1.20" }])
    error_message = "In a network without names an instance has none."
  }
}

run "is_no_spot_instance" {
  assert {
    condition     = output.dedicated_host.id == "h-0123456789abcdef0"
    error_message = "The host that was allocated is published."
  }
  assert {
    condition     = !output.interruptible
    error_message = "Nothing interrupts it."
  }
}

run "refuses_other_security_groups_in_a_launch_template" {
  command = plan

  variables {
    provider_spec = {
      iamInstanceProfile   = { id = "demo-worker-profile" }
      credentialsSecret    = { name = "aws-cloud-credentials" }
      userDataSecret       = { name = "worker-user-data" }
      ami                  = { id = "ami-0123456789abcdef0" }
      instanceType         = "c5n.18xlarge"
      networkInterfaceType = "EFA"
      placement = {
        region           = "us-east-1"
        availabilityZone = "us-east-1a"
        tenancy          = "host"
        host             = { affinity = "DedicatedHost", dedicatedHost = { allocationStrategy = "Dynamic" } }
      }
      subnet         = { id = "subnet-0a" }
      securityGroups = [{ id = "sg-0b" }]
    }
  }

  expect_failures = [terraform_data.made_with]
}
