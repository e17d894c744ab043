# Linked into a run's folder only when a Machine is adopted. A name is one instance's in a zone; so are those of its disks.
variable "adopt" {
  type = object({
    provider_id = string
    id          = string
  })
  description = "Which instance is adopted: the Machine's provider ID, gce://PROJECT/ZONE/NAME, and the ID that a user has named, projects/PROJECT/zones/ZONE/instances/NAME. Without both, the cluster's instance of the Machine's name."
}

locals {
  adopt_by_name = "${var.adopt.id}${var.adopt.provider_id}" == ""
  adopt_id = local.adopt_by_name ? local.wanted_id : var.adopt.id != "" ? trimprefix(var.adopt.id, "https://www.googleapis.com/compute/v1/") : try(
    format("projects/%s/zones/%s/instances/%s", regex("^gce://([^/]+)/([^/]+)/([^/]+)$", var.adopt.provider_id)...), var.adopt.provider_id
  )
  wanted_id = "projects/${var.provider_spec.projectID}/zones/${var.provider_spec.zone}/instances/${var.machine.name}"
  found     = data.google_compute_instance.adopted
}

data "google_compute_instance" "adopted" {
  project = var.provider_spec.projectID
  zone    = var.provider_spec.zone
  name    = var.machine.name

  lifecycle {
    precondition {
      condition     = local.adopt_id == local.wanted_id
      error_message = "The instance ${local.adopt_id} is not what the Machine's name and the project and zone of its providerSpec make, ${local.wanted_id}: correct the providerSpec. An instance cannot be renamed."
    }
    postcondition {
      condition = (
        contains(keys(self.labels), "kubernetes-io-cluster-${var.machine.cluster_id}") || !local.adopt_by_name && !anytrue([for name in keys(self.labels) : startswith(name, "kubernetes-io-cluster-")])
      )
      error_message = "The instance ${local.adopt_id} belongs to the cluster ${join(", ", [for name in keys(self.labels) : trimprefix(name, "kubernetes-io-cluster-") if startswith(name, "kubernetes-io-cluster-")])}, and the Machine to the cluster ${var.machine.cluster_id}."
    }
  }
}

import {
  to = google_compute_instance.this
  id = "projects/${local.found.project}/zones/${local.found.zone}/instances/${local.found.name}"
}

import {
  for_each = local.data_disks
  to       = google_compute_disk.data[each.key]
  id       = "projects/${local.found.project}/zones/${local.found.zone}/disks/${each.key}"
}

import {
  for_each = toset([for zone in [local.found.zone] : zone if local.control_plane])
  to       = google_compute_instance_group_membership.control_plane[0]
  id       = "projects/${local.found.project}/zones/${each.value}/instanceGroups/${var.machine.cluster_id}-master-${each.value}/${local.found.name}"
}

# An instance is what it was made as, so that nothing else says that it differs.
check "instance" {
  assert {
    condition     = var.provider_spec.machineType == basename(local.found.machine_type)
    error_message = "providerSpec.machineType: ${var.provider_spec.machineType} is requested, the instance has ${basename(local.found.machine_type)} and keeps it."
  }
  assert {
    condition     = length(setsubtract(var.provider_spec.tags, local.found.tags)) == 0
    error_message = "providerSpec.tags: ${jsonencode(var.provider_spec.tags)} are requested, the instance has ${jsonencode(local.found.tags)} and keeps them."
  }
  assert {
    condition     = alltrue([for name, value in var.provider_spec.labels : try(local.found.labels[name], null) == value])
    error_message = "providerSpec.labels: ${jsonencode(var.provider_spec.labels)} are requested, the instance has ${jsonencode(local.found.labels)} and keeps them."
  }
  assert {
    condition     = var.provider_spec.canIPForward == local.found.can_ip_forward
    error_message = "providerSpec.canIPForward: ${var.provider_spec.canIPForward} is requested, the instance has ${local.found.can_ip_forward} and keeps it."
  }
}
