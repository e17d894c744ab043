# Linked into a run's folder only when a Machine is adopted. The UUID is in the provider ID.
variable "adopt" {
  type = object({
    provider_id = string
    id          = string
  })
  description = "Which virtual machine is adopted: the Machine's provider ID, nutanix://UUID, and the UUID that a user has named. Without both, the cluster's virtual machine of the Machine's name."
}

locals {
  adopt_by_name = "${var.adopt.id}${var.adopt.provider_id}" == ""
  adopt_uuid    = local.adopt_by_name ? var.machine.name : lower(var.adopt.id != "" ? var.adopt.id : trimprefix(var.adopt.provider_id, "nutanix://"))
  found         = jsondecode(one(data.nutanix_search.adopted.entities))
}

# OpenShift's installer makes a category for a cluster, kubernetes-io-cluster-CLUSTER, and its provider puts each virtual machine into it. Without
# any such category the name must be the Machine's, unless a user has named the virtual machine.
data "nutanix_search" "adopted" {
  kind = "virtual_machine"
  uuid = local.adopt_by_name ? null : local.adopt_uuid
  name = local.adopt_by_name ? var.machine.name : null

  lifecycle {
    precondition {
      condition     = local.adopt_by_name || can(regex(local.uuid, local.adopt_uuid))
      error_message = "${jsonencode(local.adopt_uuid)} is not the UUID of a virtual machine: name it as 4237a8c4-0000-0000-0000-000000000000."
    }
    postcondition {
      condition     = length(self.entities) <= 1
      error_message = "Several virtual machines are called ${var.machine.name}: name the Machine's in the annotation machine-iac.io/adopt-id."
    }
    postcondition {
      condition     = length(self.entities) > 0
      error_message = "There is no virtual machine with the UUID ${local.adopt_uuid} to adopt."
    }
    postcondition {
      condition = alltrue([
        for one in self.entities : contains(keys(jsondecode(one).categories), local.cluster_key)
        || !local.adopt_by_name && !anytrue([for key in keys(jsondecode(one).categories) : startswith(key, "kubernetes-io-cluster-")])
      ])
      error_message = "The virtual machine ${local.adopt_uuid} belongs to the cluster ${join(", ", flatten([for one in self.entities : [for key in keys(jsondecode(one).categories) : trimprefix(key, "kubernetes-io-cluster-") if startswith(key, "kubernetes-io-cluster-")]]))}, and the Machine to the cluster ${var.machine.cluster_id}."
    }
    postcondition {
      condition = var.adopt.id != "" || alltrue([
        for one in self.entities : jsondecode(one).name == var.machine.name || contains(keys(jsondecode(one).categories), local.cluster_key)
      ])
      error_message = "The virtual machine ${local.adopt_uuid} does not prove that it is the Machine's: it has neither the category ${local.cluster_key} nor the name ${var.machine.name}. Add the category, or name the virtual machine in the annotation machine-iac.io/adopt-id."
    }
  }
}

import {
  to = nutanix_virtual_machine.this
  id = local.found.uuid
}

# A virtual machine is what it was made as, so that nothing else says that it differs.
check "virtual_machine" {
  assert {
    condition     = var.provider_spec.vcpuSockets == local.found.sockets
    error_message = "providerSpec.vcpuSockets: ${var.provider_spec.vcpuSockets} are requested, the virtual machine has ${local.found.sockets} and keeps them."
  }
  assert {
    condition     = var.provider_spec.vcpusPerSocket == local.found.vcpus_per_socket
    error_message = "providerSpec.vcpusPerSocket: ${var.provider_spec.vcpusPerSocket} are requested, the virtual machine has ${local.found.vcpus_per_socket} and keeps them."
  }
  assert {
    condition     = local.sizes[0] == local.found.memory_mib
    error_message = "providerSpec.memorySize: ${var.provider_spec.memorySize} is requested, the virtual machine has ${local.found.memory_mib}Mi and keeps it."
  }
  assert {
    condition     = local.cluster_uuid == local.found.cluster_uuid
    error_message = "providerSpec.cluster: ${local.cluster_uuid} is requested, the virtual machine is in ${local.found.cluster_uuid} and stays there."
  }
  assert {
    condition     = alltrue([for key, value in local.categories : try(local.found.categories[key], null) == value])
    error_message = "providerSpec.categories: ${jsonencode(local.categories)} are requested, the virtual machine has ${jsonencode(local.found.categories)} and keeps them."
  }
}
