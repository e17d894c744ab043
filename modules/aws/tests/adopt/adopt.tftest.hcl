# Runs with the files of adopt/ beside the module's. The engine cannot mock an import, so this is what is refused.
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
  adopt = {
    provider_id = "aws:///us-east-1a/i-0123456789abcdef0"
    id          = ""
  }
}

run "no_instance_is_not_adopted" {
  command = plan

  override_data {
    target = data.aws_instances.adopted
    values = { ids = [] }
  }

  expect_failures = [data.aws_instances.adopted]
}

run "another_cluster_s_instance_is_not_adopted" {
  command = plan

  override_data {
    target = data.aws_instances.adopted
    values = { ids = ["i-0123456789abcdef0"] }
  }
  override_data {
    target = data.aws_instance.adopted
    values = { id = "i-0123456789abcdef0", host_id = "", availability_zone = "us-east-1a", tags = { "kubernetes.io/cluster/other" = "owned", Name = "demo-x7k2p-worker-us-east-1a-abcde" } }
  }

  expect_failures = [data.aws_instance.adopted]
}

run "an_instance_without_proof_is_not_adopted" {
  command = plan

  override_data {
    target = data.aws_instances.adopted
    values = { ids = ["i-0123456789abcdef0"] }
  }
  override_data {
    target = data.aws_instance.adopted
    values = { id = "i-0123456789abcdef0", host_id = "", availability_zone = "us-east-1a", tags = { Name = "other" } }
  }

  expect_failures = [data.aws_instance.adopted]
}
