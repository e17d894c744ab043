provider "aws" {
  region = var.provider_spec.placement.region

  # The operator tries again, with backoff; a few tries here are for what EC2 does not see yet.
  max_retries = 5

  # A run then asks EC2 and load balancing only, which a private cluster has endpoints of, and knows regions newer than the provider.
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_region_validation      = true
}

resource "aws_instance" "this" {
  ami           = var.provider_spec.ami.id
  instance_type = var.provider_spec.instanceType
  key_name      = local.given.key_name

  iam_instance_profile = one(compact(var.provider_spec.iamInstanceProfile[*].id))
  user_data_base64     = var.user_data == "" ? null : base64encode(var.user_data)
  tags                 = local.tags
  # Volumes are made with their tags, which policies may require, and not tagged afterwards.
  volume_tags = local.tags

  subnet_id                   = local.templated ? null : local.subnet_id
  vpc_security_group_ids      = local.templated || length(local.security_group_ids) == 0 ? null : local.security_group_ids
  associate_public_ip_address = local.templated ? null : var.provider_spec.publicIp
  enable_primary_ipv6         = local.ipv6_primary && !local.templated ? true : null
  ipv6_address_count          = local.ipv6_primary && !local.templated ? 1 : null

  tenancy                    = local.templated ? null : local.given.tenancy
  host_id                    = local.templated ? null : local.host_id
  placement_group            = local.templated ? null : local.given.placement_group
  placement_partition_number = local.templated || local.given.placement_group == null ? null : var.provider_spec.placementGroupPartition

  dynamic "launch_template" {
    for_each = aws_launch_template.special

    content {
      id      = launch_template.value.id
      version = launch_template.value.latest_version
    }
  }

  dynamic "instance_market_options" {
    for_each = { Spot = ["spot"], CapacityBlock = ["capacity-block"], OnDemand = [] }[local.market]

    content {
      market_type = instance_market_options.value

      dynamic "spot_options" {
        for_each = local.market == "Spot" ? [try(var.provider_spec.spotMarketOptions.maxPrice, "")] : []

        content {
          spot_instance_type             = "one-time"
          instance_interruption_behavior = "terminate"
          max_price                      = spot_options.value == "" ? null : spot_options.value
        }
      }
    }
  }

  dynamic "capacity_reservation_specification" {
    for_each = compact([var.provider_spec.capacityReservationId])

    content {
      capacity_reservation_target {
        capacity_reservation_id = capacity_reservation_specification.value
      }
    }
  }

  dynamic "cpu_options" {
    for_each = var.provider_spec.cpuOptions[*].confidentialCompute

    content {
      amd_sev_snp = cpu_options.value == "Disabled" ? "disabled" : "enabled"
    }
  }

  dynamic "metadata_options" {
    for_each = local.dual_stack || var.provider_spec.metadataServiceOptions.authentication != "" ? [var.provider_spec.metadataServiceOptions.authentication] : []

    content {
      http_endpoint      = "enabled"
      http_protocol_ipv6 = local.dual_stack ? "enabled" : null
      http_tokens        = metadata_options.value == "" ? null : lower(metadata_options.value)
    }
  }

  # Only names after the instance's id have records of both families.
  dynamic "private_dns_name_options" {
    for_each = local.dual_stack ? ["resource-name"] : []

    content {
      enable_resource_name_dns_a_record    = true
      enable_resource_name_dns_aaaa_record = true
      hostname_type                        = private_dns_name_options.value
    }
  }

  # Only an entry without a name is called the root volume here, and the provider asks the image for its name. One with a name is what EC2
  # takes it for.
  dynamic "root_block_device" {
    for_each = local.root_volume[*]

    content {
      delete_on_termination = true
      encrypted             = root_block_device.value.encrypted
      iops                  = root_block_device.value.iops
      kms_key_id            = root_block_device.value.kms_key
      throughput            = root_block_device.value.throughput
      volume_size           = root_block_device.value.size
      volume_type           = root_block_device.value.type
    }
  }

  dynamic "ebs_block_device" {
    for_each = local.data_volumes

    content {
      device_name           = ebs_block_device.value.name
      delete_on_termination = true
      encrypted             = ebs_block_device.value.encrypted
      iops                  = ebs_block_device.value.iops
      kms_key_id            = ebs_block_device.value.kms_key
      throughput            = ebs_block_device.value.throughput
      volume_size           = ebs_block_device.value.size
      volume_type           = ebs_block_device.value.type
    }
  }

  lifecycle {
    # Only security groups change in place. The rest is what an instance is made with, or what others write on it: images leave, the
    # metadata service is hardened, volumes are attached by storage drivers, and cost reports tag what they find.
    ignore_changes = [
      ami, instance_type, key_name, iam_instance_profile, user_data, user_data_base64, tags, tags_all, volume_tags,
      subnet_id, associate_public_ip_address, enable_primary_ipv6, ipv6_address_count, private_dns_name_options, tenancy, host_id, placement_group, placement_partition_number,
      launch_template, instance_market_options, capacity_reservation_specification, cpu_options, metadata_options,
      root_block_device, ebs_block_device,
      # An import has none of these, which are no more than instructions to the provider.
      force_destroy, get_password_data, user_data_replace_on_change,
    ]

    precondition {
      condition     = local.subnet_id != null
      error_message = "error getting subnet IDs: no subnet IDs were found: no subnet of this region and placement.availabilityZone matches subnet.filters, so correct one of them."
    }

    precondition {
      condition     = length(data.aws_security_groups.found) == 0 || length(local.security_group_ids) > 0
      error_message = "error getting security groups IDs: no security group found: none matches the filters of securityGroups, so correct them."
    }

    precondition {
      condition     = length(local.missing_load_balancers) == 0
      error_message = "No target group that is tagged belongs to the load balancer ${join(", ", local.missing_load_balancers)}: correct loadBalancers, or tag its target groups with ${local.cluster_tag}."
    }
  }
}

# Remembers what the instance was made with, once it is made.
resource "terraform_data" "made_with" {
  input = local.fixed

  depends_on = [aws_instance.this]

  lifecycle {
    ignore_changes = [input]

    postcondition {
      # What earlier versions of this module compared, such as user data, is no matter any more.
      condition     = alltrue([for name, value in self.output : jsonencode(value) == jsonencode(try(local.fixed[name], value))])
      error_message = "An instance that exists keeps its ${join(", ", [for name, value in self.output : name if jsonencode(value) != jsonencode(try(local.fixed[name], value))])}: take the change back, or delete the Machine so that its MachineSet makes another. Only tags and loadBalancers can be added, and tags and securityGroups changed, these not where there is a launch template."
    }
  }
}

locals {
  # What is left out is null to the provider. Beside a host, a placement group has no effect.
  given = {
    key_name        = var.provider_spec.keyName == "" ? null : var.provider_spec.keyName
    tenancy         = var.provider_spec.placement.tenancy == "" ? null : var.provider_spec.placement.tenancy
    placement_group = var.provider_spec.placementGroupName == "" || var.provider_spec.placement.host != null ? null : var.provider_spec.placementGroupName
  }

  market = coalesce(var.provider_spec.marketType, var.provider_spec.spotMarketOptions == null ? "OnDemand" : "Spot")

  fixed = merge(
    { for name, value in var.provider_spec : name => value if !contains(["tags", "loadBalancers", "securityGroups", "credentialsSecret", "userDataSecret"], name) },
    { securityGroups = local.templated ? var.provider_spec.securityGroups : [] },
  )
}
