# The families of IP addresses that the cluster has. A target group for IPv6 takes instances with a primary IPv6 address only.
locals {
  ipv6_primary = var.cluster.ip_family == "DualStackIPv6Primary"
  dual_stack   = local.ipv6_primary || var.cluster.ip_family == "DualStackIPv4Primary"
}

# The subnet and the security groups, as ids, and the names that the instance has in its network. What filters have found is recorded: the subnet and its
# domains for good, the groups until the providerSpec names others.
locals {
  named_subnet_id = var.provider_spec.subnet.id != "" ? var.provider_spec.subnet.id : try(sort(data.aws_subnets.found[0].ids)[0], null)
  subnet_id       = var.recorded != null ? var.recorded.subnet_id : local.named_subnet_id

  # Of one that is made from a launch template only the request is known before.
  instance_subnet_id = local.templated ? local.subnet_id : aws_instance.this.subnet_id

  asked_groups    = jsonencode(var.provider_spec.securityGroups)
  filtered_groups = [for group in var.provider_spec.securityGroups : group.filters if !local.groups_recorded && group.id == "" && length(group.filters) > 0]
  groups_recorded = try(var.recorded.security_groups == local.asked_groups, false)

  security_group_ids = local.groups_recorded ? var.recorded.security_group_ids : distinct(concat(
    compact(var.provider_spec.securityGroups[*].id),
    flatten([for found in data.aws_security_groups.found : sort(found.ids)]),
  ))

  private_dns      = aws_instance.this.private_dns
  domains_recorded = try(var.recorded.domain_names, null)
  domain_names = local.domains_recorded != null ? local.domains_recorded : compact(flatten([
    for options in values(data.aws_vpc_dhcp_options.instance) : split(" ", options.domain_name)
  ]))
  internal_dns = distinct(compact(concat(
    [local.private_dns],
    [for domain in local.domain_names : local.private_dns == "" ? "" : "${split(".", local.private_dns)[0]}.${domain}"],
  )))
}

data "aws_subnets" "found" {
  count = var.recorded == null && var.provider_spec.subnet.id == "" ? 1 : 0

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

# Groups that differ in the values of one filter, as their names, are asked for at once.
data "aws_security_groups" "found" {
  for_each = merge(
    { for name, values in { for filters in local.filtered_groups : filters[0].name => filters[0].values... if length(filters) == 1 } :
    name => [{ name = name, values = flatten(values) }] },
    { for position, filters in local.filtered_groups : position => filters if length(filters) > 1 },
  )

  dynamic "filter" {
    for_each = each.value

    content {
      name   = filter.value.name
      values = filter.value.values
    }
  }
}

# A guest takes its domain from the network's DHCP options, and asks for a certificate by that name. A network need not have
# any. The subnet is known before the instance is made, so that what cannot be read is found before there is an instance.
data "aws_subnet" "instance" {
  count = local.domains_recorded == null ? 1 : 0

  id = local.instance_subnet_id
}

data "aws_vpc" "instance" {
  count = length(data.aws_subnet.instance)

  id = data.aws_subnet.instance[0].vpc_id
}

data "aws_vpc_dhcp_options" "instance" {
  for_each = toset([for id in data.aws_vpc.instance[*].dhcp_options_id : id if startswith(id, "dopt-")])

  dhcp_options_id = each.value
}
