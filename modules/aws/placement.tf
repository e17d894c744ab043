# Where EC2 puts the instance, and what of it only a launch template can say.
locals {
  dedicated_host = try(var.provider_spec.placement.host.dedicatedHost, null)
  dynamic_host   = try(local.dedicated_host.allocationStrategy, "") == "Dynamic"
  host_id        = local.dynamic_host ? aws_ec2_host.dedicated[0].id : try(local.dedicated_host.id, null)

  host_affinity = try(var.provider_spec.placement.host.affinity, "") == "DedicatedHost"
  efa           = var.provider_spec.networkInterfaceType == "EFA"
  # Zones at the edge of a carrier's network are called as us-east-1-wl1-bos-wlz-1; addresses there are the carrier's.
  carrier_ip = strcontains(var.provider_spec.placement.availabilityZone, "-wlz-") && var.provider_spec.publicIp != null

  templated = local.host_affinity || local.efa || local.carrier_ip
}

# Its zone, where the providerSpec does not name one.
data "aws_subnet" "host" {
  count = var.recorded == null && local.dynamic_host && var.provider_spec.placement.availabilityZone == "" ? 1 : 0

  id = local.subnet_id
}

# A host for this instance alone; it is released when the instance has ended.
resource "aws_ec2_host" "dedicated" {
  count = local.dynamic_host ? 1 : 0

  availability_zone = coalesce(var.provider_spec.placement.availabilityZone, try(var.recorded.host_zone, null), one(data.aws_subnet.host[*].availability_zone))
  instance_type     = var.provider_spec.instanceType
  auto_placement    = "off"
  tags              = merge(local.host_tags, local.own_tags)

  lifecycle {
    ignore_changes = [availability_zone, instance_type, auto_placement, tags, tags_all]
  }
}

# What the arguments of an instance cannot say: affinity to a host, a network interface of type EFA, an address of a carrier.
resource "aws_launch_template" "special" {
  count = local.templated ? 1 : 0

  name_prefix = "${var.machine.name}-"
  tags        = local.own_tags

  placement {
    affinity         = local.host_affinity ? "host" : null
    group_name       = local.given.placement_group
    host_id          = local.host_id
    partition_number = local.given.placement_group == null ? null : var.provider_spec.placementGroupPartition
    tenancy          = local.given.tenancy
  }

  network_interfaces {
    device_index                 = 0
    delete_on_termination        = true
    interface_type               = local.efa ? "efa" : null
    ipv6_address_count           = local.ipv6_primary ? 1 : null
    primary_ipv6                 = local.ipv6_primary ? true : null
    subnet_id                    = local.subnet_id
    security_groups              = local.security_group_ids
    associate_public_ip_address  = local.carrier_ip ? null : var.provider_spec.publicIp
    associate_carrier_ip_address = local.carrier_ip ? var.provider_spec.publicIp : null
  }

  lifecycle {
    # An instance reads it once.
    ignore_changes = [name_prefix, tags, tags_all, placement, network_interfaces]
  }
}
