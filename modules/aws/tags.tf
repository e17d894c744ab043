# Tags of the instance, its volumes and what else is made for it. The first of two tags of one name counts, and the cluster's last.
locals {
  uid_tag          = "machine-iac.io/machine-uid"
  installation_tag = "machine-iac.io/installation"
  cluster_tag      = "kubernetes.io/cluster/${var.machine.cluster_id}"

  own_tags = merge({
    Name                = var.machine.name
    (local.cluster_tag) = "owned"
    (local.uid_tag)     = var.machine.uid
  }, var.cluster.installation == "" ? {} : { (local.installation_tag) = var.cluster.installation })

  cluster_tags = [for tag in var.cluster.resource_tags : { name = tag.key, value = tag.value }]

  user_tags = { for name, values in { for tag in concat(var.provider_spec.tags, local.cluster_tags) : tag.name => tag.value... } :
    name => values[0] if !contains(["Name", local.uid_tag, local.installation_tag], name) && !startswith(name, "kubernetes.io/cluster/")
  }
  host_tags = { for name, values in { for tag in concat(try(local.dedicated_host.dynamicHostAllocation.tags, []), local.cluster_tags) : tag.name => tag.value... } :
    name => values[0] if !startswith(name, "kubernetes.io/cluster/")
  }

  tags = merge(local.user_tags, local.own_tags)
}

# The instance is made with all of its tags. From then on each is kept on its own, so that those of others stay.
resource "aws_ec2_tag" "user" {
  for_each = local.user_tags

  resource_id = aws_instance.this.id
  key         = each.key
  value       = each.value
}
