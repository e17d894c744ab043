# The load balancers that send requests to the instance. A network load balancer sends them to the targets of its target groups. Which these
# are the provider can find only from the other side: from target groups with the cluster's tag or, where a load balancer has none of those,
# from all that have any tag. Nothing here fails where one is gone, as it must not be in the way of a destroy.
locals {
  classic_load_balancers = toset([for balancer in var.provider_spec.loadBalancers : balancer.name if balancer.type == "classic"])
  network_load_balancers = toset([for balancer in var.provider_spec.loadBalancers : balancer.name if balancer.type == "network"])

  # By the target group, the names of its load balancers: the last but one part of their ARNs.
  balanced_by_cluster = { for arn, group in data.aws_lb_target_group.cluster : arn => [for balancer in group.load_balancer_arns : split("/", balancer)[2]] }
  balanced_by = merge(local.balanced_by_cluster, {
    for arn, group in data.aws_lb_target_group.other : arn => [for balancer in group.load_balancer_arns : split("/", balancer)[2]]
  })

  target_groups = { for arn, group in merge(data.aws_lb_target_group.cluster, data.aws_lb_target_group.other) : arn => { arn = arn, type = group.target_type }
  if length(setintersection(local.balanced_by[arn], local.network_load_balancers)) > 0 }
  # Those of an instance that exists may be gone.
  known_load_balancers   = try(var.recorded.load_balancers, [])
  missing_load_balancers = setsubtract(local.network_load_balancers, concat(local.known_load_balancers, flatten(values(local.balanced_by))))
}

data "aws_resourcegroupstaggingapi_resources" "target_groups" {
  count = length(local.network_load_balancers) > 0 ? 1 : 0

  resource_type_filters = ["elasticloadbalancing:targetgroup"]

  tag_filter {
    key = local.cluster_tag
  }
}

data "aws_lb_target_group" "cluster" {
  for_each = toset(flatten(data.aws_resourcegroupstaggingapi_resources.target_groups[*].resource_tag_mapping_list[*].resource_arn))

  arn = each.value
}

data "aws_resourcegroupstaggingapi_resources" "others" {
  for_each = toset(length(setsubtract(local.network_load_balancers, flatten(values(local.balanced_by_cluster)))) > 0 ? ["all"] : [])

  resource_type_filters = ["elasticloadbalancing:targetgroup"]
}

data "aws_lb_target_group" "other" {
  for_each = setsubtract(
    flatten(values(data.aws_resourcegroupstaggingapi_resources.others)[*].resource_tag_mapping_list[*].resource_arn),
    keys(data.aws_lb_target_group.cluster),
  )

  arn = each.value
}

resource "aws_elb_attachment" "classic" {
  for_each = local.classic_load_balancers

  elb      = each.value
  instance = aws_instance.this.id
}

resource "aws_lb_target_group_attachment" "network" {
  for_each = local.target_groups

  target_group_arn = each.value.arn
  target_id        = each.value.type == "ip" ? aws_instance.this.private_ip : aws_instance.this.id
}
