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

  subnet_id                   = local.templated ? null : local.subnet_id
  vpc_security_group_ids      = local.templated || length(local.security_group_ids) == 0 ? null : local.security_group_ids
  associate_public_ip_address = local.templated ? null : var.provider_spec.publicIp

  availability_zone          = local.templated ? null : local.availability_zone
  tenancy                    = local.templated ? null : local.given.tenancy
  host_id                    = local.templated ? null : local.host_id
  placement_group            = local.templated ? null : local.given.placement_group
  placement_partition_number = local.templated ? null : var.provider_spec.placementGroupPartition

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
    for_each = compact([var.provider_spec.metadataServiceOptions.authentication])

    content {
      http_endpoint = "enabled"
      http_tokens   = lower(metadata_options.value)
    }
  }

  root_block_device {
    delete_on_termination = true
    encrypted             = one(local.root_volume[*].encrypted)
    iops                  = one(local.root_volume[*].iops)
    kms_key_id            = one(local.root_volume[*].kms_key)
    throughput            = one(local.root_volume[*].throughput)
    volume_size           = one(local.root_volume[*].size)
    volume_type           = one(local.root_volume[*].type)
    tags                  = local.tags
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
      tags                  = local.tags
    }
  }

  lifecycle {
    # Only security groups change in place. The rest is what an instance is made with, or what others write on it: images leave, the
    # metadata service is hardened, volumes are attached by storage drivers, and cost reports tag what they find.
    ignore_changes = [
      ami, instance_type, key_name, iam_instance_profile, user_data_base64, tags, tags_all,
      subnet_id, associate_public_ip_address, tenancy, host_id, placement_group, placement_partition_number,
      launch_template, instance_market_options, capacity_reservation_specification, cpu_options, metadata_options,
      root_block_device, ebs_block_device,
      # An import has none of these, which are no more than instructions to the provider.
      force_destroy, get_password_data, user_data_replace_on_change,
    ]

    precondition {
      condition     = length(data.aws_subnets.found) == 0 || local.subnet_id != null
      error_message = "No subnet matches subnet.filters in this region and placement.availabilityZone: correct one of them."
    }

    precondition {
      condition     = alltrue([for found in data.aws_security_groups.found : length(found.ids) > 0])
      error_message = "No security group matches the filters of one of securityGroups: correct them."
    }

    precondition {
      condition     = length(local.missing_load_balancers) == 0
      error_message = "No target group with the tag ${local.cluster_tag} belongs to the load balancer ${join(", ", local.missing_load_balancers)}: correct loadBalancers, or tag its target groups."
    }
  }
}

# Remembers what the instance was made with, once it is made.
resource "terraform_data" "made_with" {
  input = nonsensitive(local.fixed)

  depends_on = [aws_instance.this]

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = alltrue([for name, value in self.output : jsonencode(value) == jsonencode(nonsensitive(local.fixed)[name])])
      error_message = "On an instance that exists, tags and loadBalancers can be added, and tags and securityGroups changed, these not where there is a launch template: take other changes back, or delete the Machine so that its MachineSet makes another."
    }
  }
}

locals {
  # What is left out is null to the provider.
  given = {
    key_name        = var.provider_spec.keyName == "" ? null : var.provider_spec.keyName
    tenancy         = var.provider_spec.placement.tenancy == "" ? null : var.provider_spec.placement.tenancy
    placement_group = var.provider_spec.placementGroupName == "" ? null : var.provider_spec.placementGroupName
  }

  market = coalesce(var.provider_spec.marketType, var.provider_spec.spotMarketOptions == null ? "OnDemand" : "Spot")

  fixed = merge(
    { for name, value in var.provider_spec : name => value if !contains(["tags", "loadBalancers", "securityGroups", "credentialsSecret", "userDataSecret"], name) },
    { securityGroups = local.templated ? var.provider_spec.securityGroups : [], userData = sha256(var.user_data) },
  )
}
