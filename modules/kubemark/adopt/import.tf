# Linked into a run's folder only when a Machine is adopted. A Node has its Machine's name, and proves by its provider ID whose it is.
variable "adopt" {
  type = object({
    provider_id = string
    id          = string
  })
  description = "Which Node is adopted: the Machine's provider ID, and the ID that a user has named. Without both, the cluster's Node of the Machine's name."
}

locals {
  adopt_by_name = "${var.adopt.id}${var.adopt.provider_id}" == ""
  # A user names a Node by its name, or by the path that a state has as its ID: /api/v1/nodes/NAME.
  adopt_name = var.adopt.id != "" ? basename(var.adopt.id) : var.machine.name
  found      = jsondecode(data.kubectl_objects.adopted.objects[0])
  # Labels of the Node, and its allocatable resources, as they are.
  found_labels   = try(local.found.metadata.labels, {})
  found_capacity = try(local.found.status.capacity, {})
}

data "kubectl_objects" "adopted" {
  api_version    = "v1"
  resource       = "nodes"
  field_selector = "metadata.name=${local.adopt_name}"
  with_status    = true

  lifecycle {
    postcondition {
      condition     = length(self.objects) == 1
      error_message = "There is no Node ${local.adopt_name} to adopt."
    }
    postcondition {
      condition     = alltrue([for node in self.objects : jsondecode(node).metadata.name == var.machine.name])
      error_message = "The Node ${local.adopt_name} has not the name of the Machine, ${var.machine.name}, and a Node cannot be renamed."
    }
    postcondition {
      condition = var.adopt.provider_id == "" || alltrue([
        for node in self.objects : try(jsondecode(node).spec.providerID, "") == var.adopt.provider_id
      ])
      error_message = "The Node ${local.adopt_name} has the provider ID ${join("", [for node in self.objects : try(jsondecode(node).spec.providerID, "none")])}, but the Machine has ${var.adopt.provider_id}."
    }
    postcondition {
      condition     = alltrue([for node in self.objects : startswith(try(jsondecode(node).spec.providerID, ""), "kubemark://")])
      error_message = "The Node ${local.adopt_name} is no simulated one: its provider ID does not begin with kubemark://."
    }
    postcondition {
      condition = alltrue([
        for node in self.objects :
        try(jsondecode(node).metadata.labels["machine-iac.io/cluster-id"], local.adopt_by_name ? "" : var.machine.cluster_id) == var.machine.cluster_id
      ])
      error_message = "The Node ${local.adopt_name} belongs to the cluster ${join("", [for node in self.objects : try(jsondecode(node).metadata.labels["machine-iac.io/cluster-id"], "")])}, and the Machine to the cluster ${var.machine.cluster_id}."
    }
  }
}

import {
  to = kubectl_manifest.this
  id = "v1//Node//${local.found.metadata.name}"
}

# An import takes any ID, and this one remembers what would else be made from the Machine's UID. Its capacity is the one that is requested:
# what the Node has instead is said below, and only another request plans a replacement.
import {
  to = terraform_data.made_with
  id = jsonencode({
    provider_id = local.found.spec.providerID
    addresses   = [for address in try(local.found.status.addresses, []) : { type = address.type, address = address.address }]
    fixed       = local.fixed
  })
}

# The API server ignores what a later write of a Node says of these, so that nothing else reports that they differ.
check "capacity" {
  assert {
    condition     = try(local.found_capacity.cpu, local.capacity.cpu) == local.capacity.cpu
    error_message = "providerSpec.cpu: ${local.capacity.cpu} is requested, the Node has ${try(local.found_capacity.cpu, "none")} and keeps it."
  }
  assert {
    condition     = try(local.found_capacity.memory, local.capacity.memory) == local.capacity.memory
    error_message = "providerSpec.memory: ${local.capacity.memory} is requested, the Node has ${try(local.found_capacity.memory, "none")} and keeps it."
  }
  assert {
    condition     = try(local.found_capacity.pods, local.capacity.pods) == local.capacity.pods
    error_message = "providerSpec.pods: ${local.capacity.pods} is requested, the Node has ${try(local.found_capacity.pods, "none")} and keeps it."
  }
  assert {
    condition     = try(local.found.status.nodeInfo.architecture, var.provider_spec.architecture) == var.provider_spec.architecture
    error_message = "providerSpec.architecture: ${var.provider_spec.architecture} is requested, the Node has ${try(local.found.status.nodeInfo.architecture, "none")} and keeps it."
  }
}

# An update writes these; a plan shows the Node as one text.
check "labels" {
  assert {
    condition     = try(local.found_labels["node.kubernetes.io/instance-type"], "") == var.provider_spec.instanceType
    error_message = "providerSpec.instanceType: ${var.provider_spec.instanceType} is requested, the Node's label is ${jsonencode(try(local.found_labels["node.kubernetes.io/instance-type"], ""))}, and will be changed."
  }
  assert {
    condition     = contains(["", try(local.found_labels["topology.kubernetes.io/region"], "")], var.provider_spec.region)
    error_message = "providerSpec.region: ${var.provider_spec.region} is requested, the Node's label is ${jsonencode(try(local.found_labels["topology.kubernetes.io/region"], ""))}, and will be changed."
  }
  assert {
    condition     = contains(["", try(local.found_labels["topology.kubernetes.io/zone"], "")], var.provider_spec.zone)
    error_message = "providerSpec.zone: ${var.provider_spec.zone} is requested, the Node's label is ${jsonencode(try(local.found_labels["topology.kubernetes.io/zone"], ""))}, and will be changed."
  }
}
