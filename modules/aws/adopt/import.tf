# Linked into a run's folder only when a Machine is adopted. An instance that is gone, or about to be, is not found.
variable "adopt" {
  type = object({
    provider_id = string
    id          = string
  })
  description = "Which instance is adopted: the Machine's provider ID, aws:///ZONE/ID, and the ID that a user has named. Without both, the cluster's instance of the Machine's name."
}

locals {
  adopt_by_name = "${var.adopt.id}${var.adopt.provider_id}" == ""
  adopt_id      = local.adopt_by_name ? var.machine.name : var.adopt.id != "" ? var.adopt.id : try(regex("[^/]+$", var.adopt.provider_id), "none")
  adopt_by      = local.adopt_by_name ? { "tag:Name" = var.machine.name, "tag:${local.cluster_tag}" = "owned" } : { "instance-id" = local.adopt_id }
  found         = data.aws_instance.adopted
  found_tags    = { for name, value in local.user_tags : name => value if contains(keys(local.found.tags), name) }
  found_profile = one(compact(var.provider_spec.iamInstanceProfile[*].id))
}

data "aws_instances" "adopted" {
  instance_state_names = ["pending", "running", "stopping", "stopped"]

  dynamic "filter" {
    for_each = local.adopt_by
    content {
      name   = filter.key
      values = [filter.value]
    }
  }

  lifecycle {
    postcondition {
      condition     = length(self.ids) <= 1
      error_message = "Several instances of the cluster are called ${var.machine.name}, ${join(", ", self.ids)}: name the Machine's in the annotation machine-iac.io/adopt-id."
    }
    postcondition {
      condition     = length(self.ids) > 0
      error_message = "There is no instance ${local.adopt_id} to adopt."
    }
  }
}

# The cluster is in the tag of each of its resources. Without any such tag the name must be the Machine's, unless a user has named the instance.
data "aws_instance" "adopted" {
  instance_id = one(data.aws_instances.adopted.ids)

  lifecycle {
    postcondition {
      condition     = contains(keys(self.tags), local.cluster_tag) || !anytrue([for name in keys(self.tags) : startswith(name, "kubernetes.io/cluster/")])
      error_message = "The instance ${local.adopt_id} belongs to the cluster ${join(", ", [for name in keys(self.tags) : trimprefix(name, "kubernetes.io/cluster/") if startswith(name, "kubernetes.io/cluster/")])}, and the Machine to the cluster ${var.machine.cluster_id}."
    }
    postcondition {
      condition     = var.adopt.id != "" || contains(keys(self.tags), local.cluster_tag) || lookup(self.tags, "Name", "") == var.machine.name
      error_message = "The instance ${local.adopt_id} does not prove that it is the Machine's: it has neither the tag ${local.cluster_tag} nor the name ${var.machine.name}. Add the tag, or name the instance in the annotation machine-iac.io/adopt-id."
    }
    postcondition {
      condition     = !local.dynamic_host || self.host_id != ""
      error_message = "The instance ${local.adopt_id} runs on no dedicated host, and placement.host asks for one of its own: correct the providerSpec."
    }
  }
}

import {
  to = aws_instance.this
  id = local.found.id
}

# A tag that the instance lacks is created, which spec.adopt.creates allows.
import {
  for_each = local.found_tags
  to       = aws_ec2_tag.user[each.key]
  id       = "${local.found.id},${each.key}"
}

import {
  for_each = toset([for id in [local.found.host_id] : id if local.dynamic_host])
  to       = aws_ec2_host.dedicated[0]
  id       = each.value
}

# An instance is what it was made as, so that nothing else says that it differs.
check "instance" {
  assert {
    condition     = var.provider_spec.instanceType == local.found.instance_type
    error_message = "providerSpec.instanceType: ${var.provider_spec.instanceType} is requested, the instance has ${local.found.instance_type} and keeps it."
  }
  assert {
    condition     = var.provider_spec.ami.id == local.found.ami
    error_message = "providerSpec.ami.id: ${var.provider_spec.ami.id} is requested, the instance has ${local.found.ami} and keeps it."
  }
  assert {
    condition     = local.subnet_id == null || local.subnet_id == local.found.subnet_id
    error_message = "providerSpec.subnet: ${local.subnet_id == null ? "none" : local.subnet_id} is requested, the instance is in ${local.found.subnet_id} and stays there."
  }
  assert {
    condition     = contains(["", local.found.availability_zone], var.provider_spec.placement.availabilityZone)
    error_message = "providerSpec.placement.availabilityZone: ${var.provider_spec.placement.availabilityZone} is requested, the instance is in ${local.found.availability_zone} and stays there."
  }
  assert {
    condition     = var.provider_spec.keyName == local.found.key_name
    error_message = "providerSpec.keyName: ${jsonencode(var.provider_spec.keyName)} is requested, the instance has ${jsonencode(local.found.key_name)} and keeps it."
  }
  assert {
    condition     = local.found_profile == null || local.found_profile == local.found.iam_instance_profile
    error_message = "providerSpec.iamInstanceProfile.id: ${local.found_profile == null ? "none" : local.found_profile} is requested, the instance has ${jsonencode(local.found.iam_instance_profile)} and keeps it."
  }
}
