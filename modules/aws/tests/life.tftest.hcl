mock_provider "aws" {
  mock_resource "aws_instance" {
    defaults = {
      id                    = "i-0123456789abcdef0"
      availability_zone     = "us-east-1a"
      instance_state        = "running"
      instance_lifecycle    = "spot"
      private_ip            = "10.0.1.20"
      private_dns           = "ip-10-0-1-20.ec2.internal"
      public_ip             = "203.0.113.7"
      public_dns            = "ec2-203-0-113-7.compute-1.amazonaws.com"
      ipv6_addresses        = ["2001:db8::7"]
      secondary_private_ips = ["10.0.1.21"]
    }
  }
  mock_data "aws_vpc" {
    defaults = { dhcp_options_id = "dopt-0a" }
  }
  mock_data "aws_vpc_dhcp_options" {
    defaults = { domain_name = "ec2.internal example.com" }
  }
  mock_data "aws_resourcegroupstaggingapi_resources" {
    defaults = {
      resource_tag_mapping_list = [{
        resource_arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/demo-x7k2p-aint/1", tags = {}, compliance_details = []
      }]
    }
  }
  mock_data "aws_lb_target_group" {
    defaults = {
      target_type        = "ip"
      load_balancer_arns = ["arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/demo-x7k2p-int/1"]
    }
  }
}

variables {
  machine = {
    name       = "demo-x7k2p-worker-us-east-1a-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = {}
  }
  provider_spec = {
    iamInstanceProfile = { id = "demo-worker-profile" }
    credentialsSecret  = { name = "aws-cloud-credentials" }
    userDataSecret     = { name = "worker-user-data" }
    ami                = { id = "ami-0123456789abcdef0" }
    instanceType       = "m6i.xlarge"
    placement          = { region = "us-east-1", availabilityZone = "us-east-1a" }
    subnet             = { id = "subnet-0a" }
    securityGroups     = [{ id = "sg-0a" }]
    tags               = [{ name = "team", value = "a" }]
    loadBalancers      = [{ name = "demo-x7k2p-int", type = "network" }]
  }
  user_data = "{}"
}

run "reads_what_concerns_the_instance_before_it_is_made" {
  command = plan

  assert {
    condition     = data.aws_vpc_dhcp_options.instance["dopt-0a"].dhcp_options_id == "dopt-0a"
    error_message = "What is read of the network is known in the plan of a create."
  }
}

run "answers_the_outputs_of_the_contract" {
  assert {
    condition     = output.provider_id == "aws:///us-east-1a/i-0123456789abcdef0"
    error_message = "The providerID is written as the cloud provider writes it."
  }
  assert {
    condition = [output.instance_id, output.instance_state, output.instance_type, output.region, output.zone] == [
      "i-0123456789abcdef0", "running", "m6i.xlarge", "us-east-1", "us-east-1a",
    ]
    error_message = "Id, state, type, region and zone are published."
  }
  assert {
    condition     = output.dedicated_host == null
    error_message = "No host is allocated."
  }
  assert {
    condition     = output.interruptible
    error_message = "EC2 says what is a Spot instance."
  }
  assert {
    condition = jsonencode(output.addresses) == jsonencode([
      { type = "InternalIP", address = "2001:db8::7" },
      { type = "InternalIP", address = "10.0.1.20" },
      { type = "InternalIP", address = "10.0.1.21" },
      { type = "ExternalIP", address = "203.0.113.7" },
      { type = "InternalDNS", address = "ip-10-0-1-20.ec2.internal" },
      { type = "InternalDNS", address = "ip-10-0-1-20.example.com" },
      { type = "Hostname", address = "ip-10-0-1-20.ec2.internal" },
      { type = "ExternalDNS", address = "ec2-203-0-113-7.compute-1.amazonaws.com" },
    ])
    error_message = "The addresses are those that certificates of Nodes are approved by."
  }
  assert {
    condition     = aws_lb_target_group_attachment.network["arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/demo-x7k2p-aint/1"].target_id == "10.0.1.20"
    error_message = "A target group of addresses gets the address."
  }
  assert {
    condition     = aws_ec2_tag.user["team"].resource_id == "i-0123456789abcdef0"
    error_message = "The user's tags are kept on the instance."
  }
}

run "takes_a_network_without_dhcp_options" {
  override_data {
    target = data.aws_vpc.instance
    values = { dhcp_options_id = "default" }
  }

  assert {
    condition     = length(data.aws_vpc_dhcp_options.instance) == 0
    error_message = "There are none to be read."
  }
  assert {
    condition     = [for address in output.addresses : address.address if address.type == "InternalDNS"] == ["ip-10-0-1-20.ec2.internal"]
    error_message = "The instance has the name that EC2 gives it, and no other."
  }
}

run "registers_the_instance_where_targets_are_instances" {
  override_data {
    target = data.aws_lb_target_group.cluster
    values = {
      target_type        = "instance"
      load_balancer_arns = ["arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/demo-x7k2p-int/1"]
    }
  }

  assert {
    condition     = aws_lb_target_group_attachment.network["arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/demo-x7k2p-aint/1"].target_id == "i-0123456789abcdef0"
    error_message = "A target group of instances gets the instance."
  }
}

run "adds_tags_and_load_balancers_and_changes_security_groups_in_place" {
  command = plan

  variables {
    provider_spec = {
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m6i.xlarge"
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a" }
      subnet             = { id = "subnet-0a" }
      securityGroups     = [{ id = "sg-0a" }, { id = "sg-0b" }]
      tags               = [{ name = "team", value = "b" }, { name = "cost", value = "c" }]
      loadBalancers      = [{ name = "demo-x7k2p-int", type = "network" }, { name = "classic", type = "classic" }]
    }
  }

  assert {
    condition     = aws_instance.this.vpc_security_group_ids == toset(["sg-0a", "sg-0b"])
    error_message = "The instance gets the other security group."
  }
  assert {
    condition     = { for name, tag in aws_ec2_tag.user : name => tag.value } == { team = "b", cost = "c" }
    error_message = "Its tags change one by one."
  }
  assert {
    condition     = keys(aws_elb_attachment.classic) == ["classic"] && length(aws_lb_target_group_attachment.network) == 1
    error_message = "Another load balancer sends to it."
  }
}

run "refuses_another_instance_type" {
  command = plan

  variables {
    provider_spec = {
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m6i.2xlarge"
      placement          = { region = "us-east-1", availabilityZone = "us-east-1a" }
      subnet             = { id = "subnet-0a" }
      securityGroups     = [{ id = "sg-0a" }]
    }
  }

  expect_failures = [terraform_data.made_with]
}

run "leaves_other_user_data_to_later_machines" {
  command = plan

  variables {
    user_data = "{\"ignition\":{}}"
  }

  assert {
    condition     = nonsensitive(aws_instance.this.user_data_base64) == base64encode("{}")
    error_message = "What has booted reads nothing of it."
  }
}

run "is_the_same_without_its_user_data" {
  command = plan

  variables {
    user_data = ""
  }

  assert {
    condition     = nonsensitive(aws_instance.this.user_data_base64) == base64encode("{}")
    error_message = "What has booted reads nothing of it."
  }
}
