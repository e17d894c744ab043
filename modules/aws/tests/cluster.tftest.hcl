mock_provider "aws" {
  mock_resource "aws_instance" {
    defaults = { id = "i-0123456789abcdef0", ipv6_addresses = [], secondary_private_ips = [] }
  }
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-0123456789abcdef0", latest_version = 1 }
  }
}

# What the cluster's Infrastructure says.
variables {
  machine = {
    name       = "demo-x7k2p-worker-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = {}
  }
  provider_spec = {
    ami                = { id = "ami-0123456789abcdef0" }
    instanceType       = "m5.large"
    iamInstanceProfile = { id = "demo-worker-profile" }
    credentialsSecret  = { name = "aws-cloud-credentials" }
    userDataSecret     = { name = "worker-user-data" }
    placement          = { region = "us-east-1", availabilityZone = "us-east-1a" }
    subnet             = { id = "subnet-0a" }
    tags               = [{ name = "team", value = "red" }, { name = "cost-center", value = "its-own" }]
  }
  user_data = ""
}

run "adds_the_tags_of_the_cluster" {
  variables {
    cluster = {
      resource_tags = [
        { key = "cost-center", value = "4711" }, { key = "environment", value = "test" },
        { key = "Name", value = "other" }, { key = "kubernetes.io/cluster/other", value = "owned" },
      ]
    }
  }

  assert {
    condition = aws_instance.this.tags == tomap({
      "team"                             = "red"
      "cost-center"                      = "its-own"
      "environment"                      = "test"
      "Name"                             = "demo-x7k2p-worker-abcde"
      "kubernetes.io/cluster/demo-x7k2p" = "owned"
      "machine-iac.io/machine-uid"       = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    })
    error_message = "The Machine's own tags come first, and the reserved ones are the module's."
  }
  assert {
    condition     = aws_instance.this.volume_tags == aws_instance.this.tags && keys(aws_ec2_tag.user) == ["cost-center", "environment", "team"]
    error_message = "Volumes have them too, and each is kept on the instance."
  }
}

run "adds_a_tag_of_the_cluster_in_place" {
  command = plan

  variables {
    cluster = {
      resource_tags = [
        { key = "environment", value = "production" }, { key = "owner", value = "me" },
      ]
    }
  }

  assert {
    condition     = { for name, tag in aws_ec2_tag.user : name => tag.value } == { cost-center = "its-own", environment = "production", owner = "me", team = "red" }
    error_message = "Its tags change one by one."
  }
  assert {
    condition     = aws_instance.this.id == "i-0123456789abcdef0" && lookup(aws_instance.this.tags, "owner", "") == ""
    error_message = "The instance stays as it is."
  }
}

run "keeps_an_instance_when_the_cluster_becomes_dual_stack" {
  command = plan

  variables {
    cluster = {
      ip_family     = "DualStackIPv6Primary"
      resource_tags = [{ key = "environment", value = "test" }]
    }
  }

  assert {
    condition     = aws_instance.this.id == "i-0123456789abcdef0" && length(aws_instance.this.private_dns_name_options) == 0
    error_message = "The families of addresses are for new instances."
  }
}
