mock_provider "aws" {
  mock_data "aws_subnets" {
    defaults = { ids = ["subnet-0b", "subnet-0a"] }
  }
  mock_data "aws_security_groups" {
    defaults = { ids = ["sg-0a"] }
  }
  mock_data "aws_vpc" {
    defaults = { dhcp_options_id = "dopt-0a" }
  }
  mock_data "aws_vpc_dhcp_options" {
    defaults = { domain_name = "ec2.internal" }
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
      target_type        = "instance"
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
    labels     = { "machine.openshift.io/cluster-api-machine-role" = "worker" }
  }
  # As OpenShift's installer writes it for a worker.
  provider_spec = {
    ami                    = { id = "ami-0123456789abcdef0" }
    blockDevices           = [{ ebs = { encrypted = true, iops = 0, kmsKey = { arn = "" }, volumeSize = 120, volumeType = "gp3" } }]
    capacityReservationId  = ""
    credentialsSecret      = { name = "aws-cloud-credentials" }
    deviceIndex            = 0
    iamInstanceProfile     = { id = "demo-x7k2p-worker-profile" }
    instanceType           = "m6i.xlarge"
    metadataServiceOptions = {}
    placement              = { availabilityZone = "us-east-1a", region = "us-east-1" }
    securityGroups = [
      { filters = [{ name = "tag:Name", values = ["demo-x7k2p-node"] }] },
      { filters = [{ name = "tag:Name", values = ["demo-x7k2p-lb"] }] },
    ]
    subnet         = { filters = [{ name = "tag:Name", values = ["demo-x7k2p-subnet-private-us-east-1a"] }] }
    tags           = [{ name = "kubernetes.io/cluster/demo-x7k2p", value = "owned" }]
    userDataSecret = { name = "worker-user-data" }
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "makes_the_worker_that_the_installer_asks_for" {
  command = plan

  override_data {
    target = data.aws_security_groups.found
    values = { ids = ["sg-0b", "sg-0a"] }
  }

  assert {
    condition     = [aws_instance.this.ami, aws_instance.this.instance_type, aws_instance.this.iam_instance_profile] == ["ami-0123456789abcdef0", "m6i.xlarge", "demo-x7k2p-worker-profile"]
    error_message = "Image, type and profile are those that are asked for."
  }
  assert {
    condition     = base64decode(nonsensitive(aws_instance.this.user_data_base64)) == "{\"ignition\":{\"version\":\"3.2.0\"}}"
    error_message = "Ignition finds the user data."
  }
  assert {
    condition = aws_instance.this.tags == tomap({
      "Name"                             = "demo-x7k2p-worker-us-east-1a-abcde"
      "kubernetes.io/cluster/demo-x7k2p" = "owned"
      "machine-iac.io/machine-uid"       = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    })
    error_message = "The instance carries the Machine's name, cluster and UID."
  }
  assert {
    condition     = aws_instance.this.volume_tags == aws_instance.this.tags
    error_message = "So do its volumes, from the moment they are made."
  }
  assert {
    condition     = aws_instance.this.subnet_id == "subnet-0a" && aws_instance.this.vpc_security_group_ids == toset(["sg-0a", "sg-0b"])
    error_message = "It is in the first of the subnets that are found, and in every security group."
  }
  assert {
    condition = jsonencode([for found in data.aws_security_groups.found : { for filter in found.filter : filter.name => sort(filter.values) }]) == jsonencode(
      [{ "tag:Name" = ["demo-x7k2p-lb", "demo-x7k2p-node"] }]
    )
    error_message = "Security groups that are named by one filter each are asked for in one call."
  }
  assert {
    condition = [for filter in data.aws_subnets.found[0].filter : "${filter.name}=${one(filter.values)}"] == [
      "availability-zone=us-east-1a", "tag:Name=demo-x7k2p-subnet-private-us-east-1a",
    ]
    error_message = "The subnet is looked for in the zone."
  }
  assert {
    condition = jsonencode([for disk in aws_instance.this.root_block_device :
    [disk.delete_on_termination, disk.encrypted, disk.volume_size, disk.volume_type]]) == jsonencode([[true, true, 120, "gp3"]])
    error_message = "The entry without a name is the root volume."
  }
  assert {
    condition     = length(aws_instance.this.ebs_block_device) == 0 && length(aws_launch_template.special) == 0 && length(aws_ec2_host.dedicated) == 0
    error_message = "Nothing is made that nobody asks for."
  }
  assert {
    condition     = length(aws_instance.this.instance_market_options) == 0 && length(aws_instance.this.capacity_reservation_specification) == 0
    error_message = "It is an on-demand instance."
  }
  assert {
    condition     = length(aws_instance.this.metadata_options) == 0
    error_message = "The metadata service is as AWS has it."
  }
  assert {
    condition     = length(aws_lb_target_group_attachment.network) == 0 && length(aws_elb_attachment.classic) == 0 && length(aws_ec2_tag.user) == 0
    error_message = "No load balancer sends to it, and the cluster's tag is not one of the user's."
  }
}

run "makes_the_control_plane_machine_that_the_installer_asks_for" {
  command = plan

  variables {
    machine = {
      name       = "demo-x7k2p-master-0"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo-x7k2p"
      labels     = { "machine.openshift.io/cluster-api-machine-role" = "master", "machine.openshift.io/cluster-api-machine-type" = "master" }
    }
    provider_spec = {
      ami                    = { id = "ami-0123456789abcdef0" }
      blockDevices           = [{ ebs = { encrypted = true, iops = 0, kmsKey = { arn = "" }, volumeSize = 120, volumeType = "gp3" } }]
      capacityReservationId  = ""
      credentialsSecret      = { name = "aws-cloud-credentials" }
      deviceIndex            = 0
      iamInstanceProfile     = { id = "demo-x7k2p-master-profile" }
      instanceType           = "m6i.xlarge"
      loadBalancers          = [{ name = "demo-x7k2p-int", type = "network" }, { name = "demo-x7k2p-ext", type = "network" }]
      metadataServiceOptions = {}
      placement              = { availabilityZone = "us-east-1a", region = "us-east-1" }
      securityGroups = [
        { filters = [{ name = "tag:Name", values = ["demo-x7k2p-controlplane"] }] },
      ]
      subnet         = { filters = [{ name = "tag:Name", values = ["demo-x7k2p-subnet-private-us-east-1a"] }] }
      tags           = [{ name = "kubernetes.io/cluster/demo-x7k2p", value = "owned" }]
      userDataSecret = { name = "master-user-data" }
    }
  }

  override_data {
    target = data.aws_resourcegroupstaggingapi_resources.target_groups
    values = {
      resource_tag_mapping_list = [
        { resource_arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/demo-x7k2p-aint/1", tags = {}, compliance_details = [] },
        { resource_arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/demo-x7k2p-sint/2", tags = {}, compliance_details = [] },
      ]
    }
  }
  override_data {
    target = data.aws_lb_target_group.cluster
    values = {
      target_type = "instance"
      load_balancer_arns = [
        "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/demo-x7k2p-ext/1",
        "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/demo-x7k2p-int/2",
      ]
    }
  }

  assert {
    condition = keys(aws_lb_target_group_attachment.network) == [
      "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/demo-x7k2p-aint/1",
      "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/demo-x7k2p-sint/2",
    ]
    error_message = "It is a target of every target group of its load balancers."
  }
  assert {
    condition     = length(data.aws_resourcegroupstaggingapi_resources.others) == 0 && data.aws_resourcegroupstaggingapi_resources.target_groups[0].tag_filter[0].key == "kubernetes.io/cluster/demo-x7k2p"
    error_message = "Target groups are found by the cluster's tag."
  }
}

run "makes_an_instance_of_what_must_be_told" {
  command = plan

  variables {
    provider_spec = {
      instanceType      = "m5.large"
      credentialsSecret = { name = "aws-cloud-credentials" }
      userDataSecret    = { name = "worker-user-data" }
      ami               = { id = "ami-0123456789abcdef0" }
      placement         = { region = "us-east-1", availabilityZone = "us-east-1b" }
    }
    user_data = ""
  }

  assert {
    condition     = aws_instance.this.instance_type == "m5.large"
    error_message = "The instance type has a default."
  }
  assert {
    condition     = aws_instance.this.subnet_id == "subnet-0a" && [for filter in data.aws_subnets.found[0].filter : "${filter.name}=${one(filter.values)}"] == ["availability-zone=us-east-1b"]
    error_message = "Without a subnet, it is the first of the zone."
  }
  assert {
    condition     = nonsensitive(aws_instance.this.user_data_base64) == null || nonsensitive(aws_instance.this.user_data_base64) != base64encode("")
    error_message = "Without user data none is sent."
  }

  expect_failures = [check.subnet, check.instance_profile]
}

run "takes_every_field" {
  command = plan

  variables {
    provider_spec = {
      ami          = { id = "ami-0123456789abcdef0" }
      instanceType = "m6a.large"
      cpuOptions   = { confidentialCompute = "AMDEncryptedVirtualizationNestedPaging" }
      tags = [
        { name = "team", value = "a" }, { name = "team", value = "b" }, { name = "empty" }, { name = "Name", value = "other" },
        { name = "kubernetes.io/cluster/other", value = "shared" }, { name = "machine-iac.io/machine-uid", value = "other" },
      ]
      iamInstanceProfile   = { id = "profile" }
      userDataSecret       = { name = "user-data" }
      credentialsSecret    = { name = "credentials" }
      keyName              = "key"
      deviceIndex          = 0
      publicIp             = true
      networkInterfaceType = "ENA"
      securityGroups       = [{ id = "sg-0c" }, { id = "sg-0c" }, { filters = [{ name = "group-name", values = ["a", "b"] }, { name = "vpc-id", values = ["vpc-1"] }] }]
      subnet               = { id = "subnet-0c" }
      placement            = { region = "us-east-1", availabilityZone = "us-east-1c", tenancy = "dedicated" }
      loadBalancers        = [{ name = "classic", type = "classic" }, { name = "demo-x7k2p-int", type = "network" }]
      blockDevices = [
        { deviceName = "/dev/xvda", ebs = { encrypted = false, volumeSize = 200, volumeType = "gp3", iops = 4000, throughputMib = 250, deleteOnTermination = true, kmsKey = { id = "alias/root" } } },
        { deviceName = "/dev/xvdb", ebs = { encrypted = true, volumeSize = 50, volumeType = "io2", iops = 1000, kmsKey = { id = "1234abcd-12ab-34cd-56ef-1234567890ab" } } },
        { deviceName = "/dev/xvdc", ebs = { encrypted = true, volumeSize = 50, volumeType = "gp3", throughputMib = 500, kmsKey = { arn = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab" } } },
      ]
      metadataServiceOptions  = { authentication = "Required" }
      placementGroupName      = "group"
      placementGroupPartition = 3
      capacityReservationId   = "cr-0123456789abcdef0"
      marketType              = "OnDemand"
    }
  }

  assert {
    condition     = aws_instance.this.cpu_options[0].amd_sev_snp == "enabled"
    error_message = "Confidential computing is on."
  }
  assert {
    condition = aws_instance.this.tags == tomap({
      "team"                             = "a"
      "empty"                            = ""
      "Name"                             = "demo-x7k2p-worker-us-east-1a-abcde"
      "kubernetes.io/cluster/demo-x7k2p" = "owned"
      "machine-iac.io/machine-uid"       = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    })
    error_message = "The first of two tags counts, and the reserved ones are the module's."
  }
  assert {
    condition     = { for name, tag in aws_ec2_tag.user : name => tag.value } == { team = "a", empty = "" }
    error_message = "The user's tags are kept one by one."
  }
  assert {
    condition     = aws_instance.this.key_name == "key" && aws_instance.this.associate_public_ip_address == true
    error_message = "Key and public address are asked for."
  }
  assert {
    condition     = aws_instance.this.vpc_security_group_ids == toset(["sg-0a", "sg-0c"]) && keys(data.aws_security_groups.found) == ["0"]
    error_message = "Security groups by id are taken as they are, those by filters are looked up."
  }
  assert {
    condition     = length(data.aws_security_groups.found["0"].filter) == 2
    error_message = "Every filter is sent."
  }
  assert {
    condition     = aws_instance.this.subnet_id == "subnet-0c" && aws_instance.this.tenancy == "dedicated" && length(data.aws_subnets.found) == 0
    error_message = "A subnet by id is taken as it is."
  }
  assert {
    condition     = keys(aws_elb_attachment.classic) == ["classic"] && aws_elb_attachment.classic["classic"].elb == "classic" && length(aws_lb_target_group_attachment.network) == 1
    error_message = "Load balancers of both kinds send to it."
  }
  assert {
    condition     = length(aws_instance.this.root_block_device) == 0
    error_message = "Which of the names is the root volume's EC2 says."
  }
  assert {
    condition = { for disk in aws_instance.this.ebs_block_device : disk.device_name => jsonencode([disk.delete_on_termination, disk.encrypted, disk.volume_size, disk.kms_key_id]) } == {
      "/dev/xvda" = jsonencode([true, false, 200, "alias/root"])
      "/dev/xvdb" = jsonencode([true, true, 50, "1234abcd-12ab-34cd-56ef-1234567890ab"])
      "/dev/xvdc" = jsonencode([true, true, 50, "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"])
    }
    error_message = "Volumes with names are encrypted with their keys."
  }
  assert {
    condition     = { for disk in aws_instance.this.ebs_block_device : disk.device_name => disk.volume_type } == { "/dev/xvda" = "gp3", "/dev/xvdb" = "io2", "/dev/xvdc" = "gp3" } && anytrue([for disk in aws_instance.this.ebs_block_device : disk.iops == 1000])
    error_message = "Volumes have the performance that is asked for."
  }
  assert {
    condition     = [aws_instance.this.metadata_options[0].http_endpoint, aws_instance.this.metadata_options[0].http_tokens] == ["enabled", "required"]
    error_message = "The metadata service wants tokens."
  }
  assert {
    condition     = aws_instance.this.placement_group == "group" && aws_instance.this.placement_partition_number == 3
    error_message = "It is in the placement group's partition."
  }
  assert {
    condition     = aws_instance.this.capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_id == "cr-0123456789abcdef0"
    error_message = "It uses the reserved capacity."
  }
  assert {
    condition     = length(aws_instance.this.instance_market_options) == 0 && length(aws_launch_template.special) == 0
    error_message = "OnDemand is no market option, and ENA is what an instance has anyway."
  }

  expect_failures = [check.tags]
}

run "asks_for_a_spot_instance" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      spotMarketOptions  = {}
    }
  }

  assert {
    condition = jsonencode([for market in aws_instance.this.instance_market_options :
    [market.market_type, market.spot_options[0].spot_instance_type, market.spot_options[0].instance_interruption_behavior]]) == jsonencode([["spot", "one-time", "terminate"]])
    error_message = "Its request is made once, and it ends when it is interrupted."
  }
}

run "asks_for_a_spot_instance_at_a_price" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      marketType         = "Spot"
      spotMarketOptions  = { maxPrice = "0.05" }
    }
  }

  assert {
    condition     = aws_instance.this.instance_market_options[0].spot_options[0].max_price == "0.05"
    error_message = "It costs no more than that."
  }
}

run "asks_for_a_capacity_block" {
  command = plan

  variables {
    provider_spec = {
      subnet                = { id = "subnet-0a" }
      iamInstanceProfile    = { id = "demo-worker-profile" }
      instanceType          = "m5.large"
      credentialsSecret     = { name = "aws-cloud-credentials" }
      userDataSecret        = { name = "worker-user-data" }
      ami                   = { id = "ami-0123456789abcdef0" }
      placement             = { region = "us-east-1" }
      marketType            = "CapacityBlock"
      capacityReservationId = "cr-0123456789abcdef0"
    }
  }

  assert {
    condition     = aws_instance.this.instance_market_options[0].market_type == "capacity-block" && length(aws_instance.this.instance_market_options[0].spot_options) == 0
    error_message = "A capacity block is a market of its own."
  }
}

run "turns_confidential_computing_off" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      cpuOptions         = { confidentialCompute = "Disabled" }
    }
  }

  assert {
    condition     = aws_instance.this.cpu_options[0].amd_sev_snp == "disabled"
    error_message = "Confidential computing is off."
  }
}

run "uses_the_elastic_fabric_adapter" {
  command = plan

  variables {
    provider_spec = {
      iamInstanceProfile      = { id = "demo-worker-profile" }
      instanceType            = "m5.large"
      credentialsSecret       = { name = "aws-cloud-credentials" }
      userDataSecret          = { name = "worker-user-data" }
      ami                     = { id = "ami-0123456789abcdef0" }
      placement               = { region = "us-east-1", availabilityZone = "us-east-1a", tenancy = "dedicated" }
      networkInterfaceType    = "EFA"
      publicIp                = false
      placementGroupName      = "group"
      placementGroupPartition = 2
      subnet                  = { id = "subnet-0a" }
      securityGroups          = [{ id = "sg-0a" }]
    }
  }

  assert {
    condition = [for nic in aws_launch_template.special[0].network_interfaces :
      [nic.interface_type, nic.subnet_id, one(nic.security_groups), nic.device_index, nic.associate_public_ip_address, nic.delete_on_termination]] == [
      ["efa", "subnet-0a", "sg-0a", 0, "false", "true"],
    ]
    error_message = "The launch template has the network interface."
  }
  assert {
    condition     = aws_launch_template.special[0].placement[0].tenancy == "dedicated" && aws_launch_template.special[0].placement[0].group_name == "group" && aws_launch_template.special[0].placement[0].partition_number == 2
    error_message = "It has the placement as well, of which an instance has one."
  }
}

run "takes_an_address_of_the_carrier_in_a_wavelength_zone" {
  command = plan

  variables {
    provider_spec = {
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1-wl1-bos-wlz-1" }
      publicIp           = true
      subnet             = { id = "subnet-0a" }
    }
  }

  assert {
    condition     = aws_launch_template.special[0].network_interfaces[0].associate_carrier_ip_address == "true" && aws_launch_template.special[0].network_interfaces[0].associate_public_ip_address == null
    error_message = "Wavelength zones have no other public addresses."
  }
}

run "needs_no_launch_template_in_a_wavelength_zone_without_an_address" {
  command = plan

  variables {
    provider_spec = {
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1", availabilityZone = "us-east-1-wl1-bos-wlz-1" }
      subnet             = { id = "subnet-0a" }
    }
  }

  assert {
    condition     = length(aws_launch_template.special) == 0
    error_message = "The subnet decides about addresses, as elsewhere."
  }
}

run "stays_on_its_dedicated_host" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement = {
        region = "us-east-1", tenancy = "host", host = { affinity = "DedicatedHost", dedicatedHost = { id = "h-0fedcba9876543210" } }
      }
    }
  }

  assert {
    condition = [for place in aws_launch_template.special[0].placement : [place.affinity, place.host_id, place.tenancy]] == [
      ["host", "h-0fedcba9876543210", "host"],
    ]
    error_message = "The instance starts on this host again."
  }
}

run "is_put_on_a_host_that_it_may_leave" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement = {
        region = "us-east-1", tenancy = "host", host = { affinity = "AnyAvailable", dedicatedHost = { id = "h-01234567" } }
      }
    }
  }

  assert {
    condition     = aws_instance.this.host_id == "h-01234567" && aws_instance.this.tenancy == "host" && length(aws_launch_template.special) == 0
    error_message = "The host is set without affinity."
  }
}

run "allocates_a_host" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement = {
        region           = "us-east-1"
        availabilityZone = "us-east-1a"
        tenancy          = "host"
        host = {
          affinity      = "DedicatedHost"
          dedicatedHost = { allocationStrategy = "Dynamic", dynamicHostAllocation = { tags = [{ name = "license", value = "x" }] } }
        }
      }
    }
  }

  assert {
    condition = [aws_ec2_host.dedicated[0].instance_type, aws_ec2_host.dedicated[0].availability_zone, aws_ec2_host.dedicated[0].auto_placement] == [
      "m5.large", "us-east-1a", "off",
    ]
    error_message = "A host of the instance's type takes no other instance."
  }
  assert {
    condition     = aws_ec2_host.dedicated[0].tags.license == "x" && aws_ec2_host.dedicated[0].tags["machine-iac.io/machine-uid"] == var.machine.uid
    error_message = "It has its tags, and the Machine's."
  }
}

run "refuses_filters_that_no_subnet_matches" {
  command = plan

  override_data {
    target = data.aws_subnets.found
    values = { ids = [] }
  }

  expect_failures = [aws_instance.this]
}

run "refuses_filters_that_no_security_group_matches" {
  command = plan

  override_data {
    target = data.aws_security_groups.found
    values = { ids = [] }
  }

  expect_failures = [aws_instance.this]
}

run "allocates_a_host_in_the_zone_of_its_subnet" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      instanceType       = "m5.large"
      placement = {
        region = "us-east-1", tenancy = "host", host = { affinity = "DedicatedHost", dedicatedHost = { allocationStrategy = "Dynamic" } }
      }
    }
  }

  override_data {
    target = data.aws_subnet.host
    values = { availability_zone = "us-east-1c" }
  }

  assert {
    condition     = aws_ec2_host.dedicated[0].availability_zone == "us-east-1c" && data.aws_subnet.host[0].id == "subnet-0a"
    error_message = "A host has the zone of the subnet where none is set."
  }
}

run "goes_without_a_security_group_that_is_not_found" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      securityGroups     = [{ id = "sg-0b" }, { filters = [{ name = "tag:Name", values = ["gone"] }] }]
    }
  }

  override_data {
    target = data.aws_security_groups.found
    values = { ids = [] }
  }

  assert {
    condition     = aws_instance.this.vpc_security_group_ids == toset(["sg-0b"])
    error_message = "The others count."
  }
}

run "finds_target_groups_without_the_tag_of_the_cluster" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      loadBalancers      = [{ name = "demo-x7k2p-int", type = "network" }, { name = "ours", type = "network" }]
    }
  }

  override_data {
    target = data.aws_resourcegroupstaggingapi_resources.others
    values = {
      resource_tag_mapping_list = [
        { resource_arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/demo-x7k2p-aint/1", tags = {}, compliance_details = [] },
        { resource_arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/ours/2", tags = {}, compliance_details = [] },
      ]
    }
  }
  override_data {
    target = data.aws_lb_target_group.other
    values = { target_type = "ip", load_balancer_arns = ["arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/ours/3"] }
  }

  assert {
    condition = { for arn, attachment in aws_lb_target_group_attachment.network : attachment.target_group_arn => local.target_groups[arn].type } == {
      "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/demo-x7k2p-aint/1" = "instance"
      "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/ours/2"            = "ip"
    }
    error_message = "A load balancer that has none with the tag is found by its name alone."
  }
}

run "refuses_a_load_balancer_without_target_groups" {
  command = plan

  variables {
    provider_spec = {
      subnet             = { id = "subnet-0a" }
      iamInstanceProfile = { id = "demo-worker-profile" }
      instanceType       = "m5.large"
      credentialsSecret  = { name = "aws-cloud-credentials" }
      userDataSecret     = { name = "worker-user-data" }
      ami                = { id = "ami-0123456789abcdef0" }
      placement          = { region = "us-east-1" }
      loadBalancers      = [{ name = "demo-x7k2p-int", type = "network" }, { name = "demo-x7k2p-ext", type = "network" }]
    }
  }

  expect_failures = [aws_instance.this]
}
