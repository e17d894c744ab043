# Linked into a run's folder only when a Machine is adopted. The UUID of a domain is in the provider ID.
variable "adopt" {
  type = object({
    provider_id = string
    id          = string
  })
  description = "Which domain is adopted: the Machine's provider ID, libvirt:///UUID, and the UUID that a user has named."
}

locals {
  adopt_uuid = lower(var.adopt.id != "" ? var.adopt.id : try(regex("[^/]+$", var.adopt.provider_id), "none"))
  found      = jsondecode(one(data.libvirt_domains.adopted.domains))
}

# Libvirt knows no clusters. A domain that this module has made names its own in the description, and any other has the Machine's name.
data "libvirt_domains" "adopted" {
  uuid = local.adopt_uuid

  lifecycle {
    postcondition {
      condition     = length(self.domains) == 1
      error_message = "There is no domain with the UUID ${local.adopt_uuid} to adopt."
    }
    postcondition {
      condition     = alltrue([for domain in self.domains : jsondecode(domain).name == var.machine.name])
      error_message = "The domain ${local.adopt_uuid} is called ${join("", [for domain in self.domains : jsondecode(domain).name])}, and not as the Machine, ${var.machine.name}, and this provider cannot rename it."
    }
    postcondition {
      condition = alltrue([
        for domain in self.domains : try(regex(" of the cluster (.*)$", jsondecode(domain).description)[0], var.machine.cluster_id) == var.machine.cluster_id
      ])
      error_message = "The domain ${local.adopt_uuid} belongs to the cluster ${join("", [for domain in self.domains : try(regex(" of the cluster (.*)$", jsondecode(domain).description)[0], "")])}, and the Machine to the cluster ${var.machine.cluster_id}."
    }
    postcondition {
      condition     = alltrue([for domain in self.domains : length(jsondecode(domain).volumes) == 1])
      error_message = "The domain ${local.adopt_uuid} has the volumes ${join(", ", flatten([for domain in self.domains : jsondecode(domain).volumes]))}: it can be adopted with one, which is in a storage pool."
    }
  }
}

import {
  to = libvirt_domain.this
  id = local.found.uuid
}

import {
  to = libvirt_volume.root
  id = one(local.found.volumes)
}

# A domain is what it was made as, so that nothing else says that it differs.
check "domain" {
  assert {
    condition     = var.provider_spec.domainMemory == local.found.memory_mib
    error_message = "providerSpec.domainMemory: ${var.provider_spec.domainMemory} is requested, the domain has ${local.found.memory_mib} MiB and keeps them."
  }
  assert {
    condition     = var.provider_spec.domainVcpu == local.found.vcpus
    error_message = "providerSpec.domainVcpu: ${var.provider_spec.domainVcpu} is requested, the domain has ${local.found.vcpus} and keeps them."
  }
}
