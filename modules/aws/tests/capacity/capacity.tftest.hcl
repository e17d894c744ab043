# Runs with the files of capacity/ beside the module's.
mock_provider "aws" {
  mock_resource "aws_instance" {
    defaults = {
      id                    = "i-0123456789abcdef0"
      availability_zone     = "us-east-1a"
      instance_state        = "running"
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
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = "{}"
}

run "reads_the_size_of_the_instance_type" {
  command = plan

  override_data {
    target = data.aws_ec2_instance_type.capacity
    values = { default_vcpus = 96, memory_size = 786432, supported_architectures = ["arm64"] }
  }
  assert {
    condition     = data.aws_ec2_instance_type.capacity.instance_type == var.provider_spec.instanceType && output.capacity == { cpu = 96, memory_mib = 786432, gpu = 0, architecture = "arm64" }
    error_message = "The size is the instance type's."
  }
}
