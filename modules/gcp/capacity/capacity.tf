# Linked into a run's folder only to read the size of a machine type that capacity.yaml lacks.
data "google_compute_machine_types" "capacity" {
  project = var.provider_spec.projectID
  zone    = var.provider_spec.zone
  filter  = "name = ${var.provider_spec.machineType}"

  lifecycle {
    postcondition {
      condition     = length(self.machine_types) == 1
      error_message = "The zone ${var.provider_spec.zone} has ${length(self.machine_types)} machine types ${var.provider_spec.machineType}: correct machineType."
    }
  }
}

locals {
  capacity_type = one(data.google_compute_machine_types.capacity.machine_types)
}

output "capacity" {
  description = "What the machine type offers. The operator adds GPUs of the providerSpec."
  value = {
    cpu          = local.capacity_type.guest_cpus
    memory_mib   = local.capacity_type.memory_mb
    gpu          = sum(concat([0], [for one in local.capacity_type.accelerators : one.guest_accelerator_count]))
    architecture = can(regex("^(a4x|c4a|n4a|t2a)-", local.capacity_type.name)) ? "arm64" : "amd64"
  }
}
