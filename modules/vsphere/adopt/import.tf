# Linked into a run's folder only when a Machine is adopted. The BIOS UUID is in the provider ID.
variable "adopt" {
  type = object({
    provider_id = string
    id          = string
  })
  description = "Which virtual machine is adopted: the Machine's provider ID, vsphere://UUID, and the UUID that a user has named. Without both, the cluster's virtual machine of the Machine's name in the folder of the providerSpec."
}

locals {
  adopt_by_name = "${var.adopt.id}${var.adopt.provider_id}" == ""
  adopt_uuid    = lower(var.adopt.id != "" ? var.adopt.id : trimprefix(var.adopt.provider_id, "vsphere://"))
  adopt_as      = local.adopt_by_name ? var.machine.name : local.adopt_uuid
  cluster_tag   = "openshift-${var.machine.cluster_id}/${var.machine.cluster_id}"
  found = jsondecode(one([
    for machine in data.vsphere_virtual_machines.adopted.virtual_machines : machine if !local.adopt_by_name || jsondecode(machine).name == var.machine.name
  ]))
}

# OpenShift's installer makes a category of tags for a cluster, openshift-CLUSTER, and its actuator gives each virtual machine the tag CLUSTER of it.
# Without any such tag the name must be the Machine's, unless a user has named the virtual machine. A search by the name alone needs the tag.
data "vsphere_virtual_machines" "adopted" {
  datacenter = coalesce(var.provider_spec.workspace.datacenter, "*")
  folder     = local.adopt_by_name ? local.folder : null
  uuid       = local.adopt_by_name ? null : local.adopt_uuid

  lifecycle {
    precondition {
      condition     = local.adopt_by_name || can(regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", local.adopt_uuid))
      error_message = "${jsonencode(local.adopt_uuid)} is not the BIOS UUID of a virtual machine: name it as 4237a8c4-0000-0000-0000-000000000000."
    }
    postcondition {
      condition = length([
        for machine in self.virtual_machines : machine if !local.adopt_by_name || jsondecode(machine).name == var.machine.name
      ]) == 1
      error_message = "There is no virtual machine ${local.adopt_by_name ? "called" : "with the UUID"} ${local.adopt_as} to adopt."
    }
    postcondition {
      condition = alltrue([
        for machine in self.virtual_machines : contains(values(jsondecode(machine).tags), local.cluster_tag)
        || !anytrue([for tag in values(jsondecode(machine).tags) : startswith(tag, "openshift-")])
        || local.adopt_by_name && jsondecode(machine).name != var.machine.name
      ])
      error_message = "The virtual machine ${local.adopt_as} belongs to the cluster ${join(", ", flatten([for machine in self.virtual_machines : [for tag in values(jsondecode(machine).tags) : split("/", tag)[1] if startswith(tag, "openshift-")] if !local.adopt_by_name || jsondecode(machine).name == var.machine.name]))}, and the Machine to the cluster ${var.machine.cluster_id}."
    }
    postcondition {
      condition = var.adopt.id != "" || alltrue([
        for machine in self.virtual_machines : contains(values(jsondecode(machine).tags), local.cluster_tag)
        || (jsondecode(machine).name == var.machine.name) != local.adopt_by_name
      ])
      error_message = "The virtual machine ${local.adopt_as} does not prove that it is the Machine's: it lacks the tag ${var.machine.cluster_id} of the category openshift-${var.machine.cluster_id}${local.adopt_by_name ? "" : " and the name ${var.machine.name}"}. Add the tag, or name the virtual machine in the annotation machine-iac.io/adopt-id."
    }
    postcondition {
      condition = !anytrue([
        for machine in self.virtual_machines : jsondecode(machine).template if !local.adopt_by_name || jsondecode(machine).name == var.machine.name
      ])
      error_message = "The virtual machine ${local.adopt_as} is a template."
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
