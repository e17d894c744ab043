# The families of IP addresses that the cluster has. A target group for IPv6 takes instances with a primary IPv6 address only.
locals {
  ipv6_primary = var.cluster.ip_family == "DualStackIPv6Primary"
  dual_stack   = local.ipv6_primary || var.cluster.ip_family == "DualStackIPv4Primary"
}

# The subnet and the security groups, as ids, and the names that the instance has in its network.
locals {
  subnet_id = var.provider_spec.subnet.id != "" ? var.provider_spec.subnet.id : try(sort(data.aws_subnets.found[0].ids)[0], null)

  security_group_ids = distinct(concat(
    compact(var.provider_spec.securityGroups[*].id),
    flatten([for found in data.aws_security_groups.found : sort(found.ids)]),
  ))

  private_dns  = aws_instance.this.private_dns
  domain_names = compact(split(" ", data.aws_vpc_dhcp_options.instance.domain_name))
  internal_dns = distinct(compact(concat(
    [local.private_dns],
    [for domain in local.domain_names : local.private_dns == "" ? "" : "${split(".", local.private_dns)[0]}.${domain}"],
  )))
}

data "aws_subnets" "found" {
  count = var.provider_spec.subnet.id == "" ? 1 : 0

  dynamic "filter" {
    for_each = concat(var.provider_spec.subnet.filters, [
      for zone in compact([var.provider_spec.placement.availabilityZone]) : { name = "availability-zone", values = [zone] }
    ])

    content {
      name   = filter.value.name
      values = filter.value.values
    }
  }
}

data "aws_security_groups" "found" {
  for_each = { for position, group in var.provider_spec.securityGroups : position => group.filters if group.id == "" && length(group.filters) > 0 }

  dynamic "filter" {
    for_each = each.value

    content {
      name   = filter.value.name
      values = filter.value.values
    }
  }
}

# A guest takes its domain from the network's DHCP options, and asks for a certificate by that name. All of this is read with the
# instance there; without it, its subnet may be gone too, and must not be in the way of a destroy.
data "aws_subnet" "instance" {
  id = aws_instance.this.subnet_id

  depends_on = [aws_instance.this]
}

data "aws_vpc" "instance" {
  id = data.aws_subnet.instance.vpc_id
}

data "aws_vpc_dhcp_options" "instance" {
  dhcp_options_id = data.aws_vpc.instance.dhcp_options_id
}
