mock_provider "aws" {}

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

run "has_a_primary_ipv6_address" {
  command = plan

  variables {
    cluster = { ip_family = "DualStackIPv6Primary" }
  }

  assert {
    condition     = aws_instance.this.enable_primary_ipv6 && aws_instance.this.ipv6_address_count == 1
    error_message = "A target group for IPv6 takes no other instance."
  }
  assert {
    condition     = jsonencode([for service in aws_instance.this.metadata_options : [service.http_endpoint, service.http_protocol_ipv6]]) == jsonencode([["enabled", "enabled"]])
    error_message = "The metadata service has an address of IPv6."
  }
  assert {
    condition = jsonencode([for names in aws_instance.this.private_dns_name_options :
    [names.hostname_type, names.enable_resource_name_dns_a_record, names.enable_resource_name_dns_aaaa_record]]) == jsonencode([["resource-name", true, true]])
    error_message = "Its name has records of both families."
  }
}

run "has_both_families_with_ipv4_first" {
  command = plan

  variables {
    cluster = { ip_family = "DualStackIPv4Primary" }
    provider_spec = {
      ami                    = { id = "ami-0123456789abcdef0" }
      instanceType           = "m5.large"
      iamInstanceProfile     = { id = "demo-worker-profile" }
      credentialsSecret      = { name = "aws-cloud-credentials" }
      userDataSecret         = { name = "worker-user-data" }
      subnet                 = { id = "subnet-0a" }
      placement              = { region = "us-east-1" }
      metadataServiceOptions = { authentication = "Required" }
    }
  }

  assert {
    condition     = aws_instance.this.enable_primary_ipv6 != true && aws_instance.this.ipv6_address_count != 1
    error_message = "No address of IPv6 is primary."
  }
  assert {
    condition     = jsonencode([for service in aws_instance.this.metadata_options : [service.http_protocol_ipv6, service.http_tokens]]) == jsonencode([["enabled", "required"]])
    error_message = "The metadata service has an address of IPv6, and requires tokens."
  }
  assert {
    condition     = aws_instance.this.private_dns_name_options[0].hostname_type == "resource-name"
    error_message = "Its name has records of both families."
  }
}

run "has_a_primary_ipv6_address_in_a_launch_template" {
  command = plan

  variables {
    cluster = { ip_family = "DualStackIPv6Primary" }
    provider_spec = {
      ami                  = { id = "ami-0123456789abcdef0" }
      instanceType         = "m5.large"
      iamInstanceProfile   = { id = "demo-worker-profile" }
      credentialsSecret    = { name = "aws-cloud-credentials" }
      userDataSecret       = { name = "worker-user-data" }
      subnet               = { id = "subnet-0a" }
      placement            = { region = "us-east-1" }
      networkInterfaceType = "EFA"
    }
  }

  assert {
    condition     = [for nic in aws_launch_template.special[0].network_interfaces : [nic.primary_ipv6, nic.ipv6_address_count]] == [["true", 1]]
    error_message = "The launch template has the network interface."
  }
  assert {
    condition     = aws_instance.this.enable_primary_ipv6 != true && aws_instance.this.ipv6_address_count != 1
    error_message = "EC2 refuses a second one."
  }
}

run "has_one_family" {
  command = plan

  variables {
    cluster = { ip_family = "IPv4" }
  }

  assert {
    condition     = aws_instance.this.enable_primary_ipv6 != true && length(aws_instance.this.metadata_options) == 0 && length(aws_instance.this.private_dns_name_options) == 0
    error_message = "Nothing is requested."
  }
}
