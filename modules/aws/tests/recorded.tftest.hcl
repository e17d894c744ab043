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
    subnet             = { filters = [{ name = "tag:Name", values = ["demo-private"] }] }
    securityGroups     = [{ filters = [{ name = "tag:Name", values = ["demo-worker"] }] }]
    tags               = [{ name = "team", value = "a" }]
    loadBalancers      = [{ name = "demo-x7k2p-int", type = "network" }]
  }
  user_data = "{}"
}

run "records_what_filters_have_found" {
  override_data {
    target = data.aws_subnets.found
    values = { ids = ["subnet-0b", "subnet-0a"] }
  }
  override_data {
    target = data.aws_security_groups.found
    values = { ids = ["sg-0b"] }
  }

  assert {
    condition     = output.recorded.subnet_id == "subnet-0a" && output.recorded.security_group_ids == tolist(["sg-0b"]) && output.recorded.load_balancers == tolist(["demo-x7k2p-int"])
    error_message = "What was found is recorded with the instance."
  }
}

run "needs_nothing_of_it_once_it_is_there" {
  command = plan

  variables {
    recorded = {
      subnet_id       = "subnet-0a", host_zone = null, security_group_ids = ["sg-0b"], load_balancers = ["demo-x7k2p-int"]
      domain_names    = ["example.com"]
      security_groups = jsonencode([{ arn = "", filters = [{ name = "tag:Name", values = ["demo-worker"] }], id = "" }])
    }
  }
  override_data {
    target = data.aws_resourcegroupstaggingapi_resources.target_groups
    values = { resource_tag_mapping_list = [] }
  }
  override_data {
    target = data.aws_resourcegroupstaggingapi_resources.others
    values = { resource_tag_mapping_list = [] }
  }

  assert {
    condition     = length(data.aws_subnets.found) == 0 && length(data.aws_security_groups.found) == 0 && aws_instance.this.vpc_security_group_ids == toset(["sg-0b"])
    error_message = "The filters may match nothing any more, and the load balancer may be gone."
  }
  assert {
    condition = 0 == length(data.aws_subnet.instance) + length(data.aws_vpc.instance) + length(data.aws_vpc_dhcp_options.instance) && (
      contains(output.addresses, { type = "InternalDNS", address = "ip-10-0-1-20.example.com" })
    )
    error_message = "The domains of its network are not asked for again."
  }
}

run "looks_for_other_security_groups" {
  command = plan

  variables {
    recorded = { subnet_id = "subnet-0a", host_zone = null, security_group_ids = ["sg-0c"], load_balancers = [], security_groups = jsonencode([{ id = "sg-0c" }]) }
  }
  override_data {
    target = data.aws_security_groups.found
    values = { ids = ["sg-0b"] }
  }

  assert {
    condition     = aws_instance.this.vpc_security_group_ids == toset(["sg-0b"])
    error_message = "Groups that the providerSpec names since are found."
  }
}
