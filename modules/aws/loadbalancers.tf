# The load balancers that send requests to the instance. A network load balancer sends them to the targets of its target groups, which
# are found by the cluster's tag: nothing here fails where one is gone, as it must not be in the way of a destroy.
locals {
  classic_load_balancers = toset([for balancer in var.provider_spec.loadBalancers : balancer.name if balancer.type == "classic"])
  network_load_balancers = toset([for balancer in var.provider_spec.loadBalancers : balancer.name if balancer.type == "network"])

  # By the target group, the names of its load balancers: the last but one part of their ARNs.
  balanced_by = { for arn, group in data.aws_lb_target_group.cluster : arn => [for balancer in group.load_balancer_arns : split("/", balancer)[2]] }

  target_groups          = { for arn, names in local.balanced_by : arn => names if length(setintersection(names, local.network_load_balancers)) > 0 }
  missing_load_balancers = setsubtract(local.network_load_balancers, flatten(values(local.balanced_by)))
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

resource "aws_elb_attachment" "classic" {
  for_each = local.classic_load_balancers

  elb      = each.value
  instance = aws_instance.this.id
}

resource "aws_lb_target_group_attachment" "network" {
  for_each = local.target_groups

  target_group_arn = each.key
  target_id        = data.aws_lb_target_group.cluster[each.key].target_type == "ip" ? aws_instance.this.private_ip : aws_instance.this.id
}
