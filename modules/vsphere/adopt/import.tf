# Linked into a run's folder only when a Machine is adopted. The BIOS UUID is in the provider ID.
variable "adopt" {
  type = object({
    provider_id = string
    id          = string
  })
  description = "Which virtual machine is adopted: the Machine's provider ID, vsphere://UUID, and the UUID that a user has named."
}

locals {
  adopt_uuid = lower(var.adopt.id != "" ? var.adopt.id : trimprefix(var.adopt.provider_id, "vsphere://"))
  found      = jsondecode(one(data.vsphere_virtual_machines.adopted.virtual_machines))
}

# OpenShift's installer makes a category of tags for a cluster, openshift-CLUSTER, and its actuator gives each virtual machine the tag CLUSTER of it.
# Without any such tag the name must be the Machine's, unless a user has named the virtual machine.
data "vsphere_virtual_machines" "adopted" {
  datacenter = var.provider_spec.workspace.datacenter
  uuid       = local.adopt_uuid

  lifecycle {
    precondition {
      condition     = can(regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", local.adopt_uuid))
      error_message = "${jsonencode(local.adopt_uuid)} is not the BIOS UUID of a virtual machine: name it as 4237a8c4-0000-0000-0000-000000000000."
    }
    postcondition {
      condition     = length(self.virtual_machines) == 1
      error_message = "There is no virtual machine with the UUID ${local.adopt_uuid} to adopt."
    }
    postcondition {
      condition = alltrue([
        for machine in self.virtual_machines : contains(values(jsondecode(machine).tags), "openshift-${var.machine.cluster_id}/${var.machine.cluster_id}")
        || !anytrue([for tag in values(jsondecode(machine).tags) : startswith(tag, "openshift-")])
      ])
      error_message = "The virtual machine ${local.adopt_uuid} belongs to the cluster ${join(", ", flatten([for machine in self.virtual_machines : [for tag in values(jsondecode(machine).tags) : split("/", tag)[1] if startswith(tag, "openshift-")]]))}, and the Machine to the cluster ${var.machine.cluster_id}."
    }
    postcondition {
      condition = var.adopt.id != "" || alltrue([
        for machine in self.virtual_machines : jsondecode(machine).name == var.machine.name
        || contains(values(jsondecode(machine).tags), "openshift-${var.machine.cluster_id}/${var.machine.cluster_id}")
      ])
      error_message = "The virtual machine ${local.adopt_uuid} does not prove that it is the Machine's: it has neither the tag ${var.machine.cluster_id} of the category openshift-${var.machine.cluster_id} nor the name ${var.machine.name}. Add the tag, or name the virtual machine in the annotation machine-iac.io/adopt-id."
    }
    postcondition {
      condition     = !anytrue([for machine in self.virtual_machines : jsondecode(machine).template])
      error_message = "The virtual machine ${local.adopt_uuid} is a template."
    }
  }
}

import {
  to = vsphere_virtual_machine.this
  id = local.found.path
}

# An import takes any ID, and this one remembers the tags, which an update would else remove.
import {
  to = terraform_data.adopted
  id = jsonencode(sort(keys(local.found.tags)))
}

# A virtual machine is what it was made as, so that nothing else says that it differs.
check "virtual_machine" {
  assert {
    condition     = local.asked.cpus == 0 || local.asked.cpus == local.found.num_cpus
    error_message = "providerSpec.numCPUs: ${local.asked.cpus} are requested, the virtual machine has ${local.found.num_cpus} and keeps them."
  }
  assert {
    condition     = local.asked.memory == 0 || local.asked.memory == local.found.memory_mib
    error_message = "providerSpec.memoryMiB: ${local.asked.memory} are requested, the virtual machine has ${local.found.memory_mib} and keeps them."
  }
}
