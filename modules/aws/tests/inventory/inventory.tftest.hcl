# Runs with the files of inventory/ beside the module's.
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
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = "{}"
}

run "lists_instances" {
  command = plan

  override_data {
    target = data.aws_instances.inventory
    values = { ids = ["i-1"] }
  }
  override_data {
    target = data.aws_instance.inventory
    values = { id = "i-1", availability_zone = "us-east-1a", launch_time = "2026-01-01T00:00:00Z", tags = { Name = "a", "machine-iac.io/machine-uid" = "u", "machine-iac.io/installation" = "i" } }
  }
  assert {
    condition     = [for filter in data.aws_instances.inventory.filter : [filter.name, tolist(filter.values)]] == [["tag-key", tolist(["kubernetes.io/cluster/demo-x7k2p"])]]
    error_message = "Instances of other clusters are not asked for."
  }
  assert {
    condition     = output.inventory == [{ provider_id = "aws:///us-east-1a/i-1", name = "a", created = "2026-01-01T00:00:00Z", machine_uid = "u", installation = "i" }]
    error_message = "Every instance is listed, with the UID of its Machine."
  }
  assert {
    condition     = aws_instance.this.tags["machine-iac.io/installation"] == "c0ffee00-0000-4000-8000-000000000001" && aws_instance.this.volume_tags == aws_instance.this.tags
    error_message = "What is made bears the UID of the installation."
  }
}
