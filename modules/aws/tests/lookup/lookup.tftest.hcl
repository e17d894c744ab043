# The engine cannot mock an import, so what is found once is left to tests with a provider.
mock_provider "aws" {
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

run "finds_nothing" {
  command = plan

  override_data {
    target = data.aws_instances.lost
    values = { ids = [] }
  }
}

run "two_instances_stop_it" {
  command = plan

  override_data {
    target = data.aws_instances.lost
    values = { ids = ["i-1", "i-2"] }
  }

  expect_failures = [data.aws_instances.lost]
}
