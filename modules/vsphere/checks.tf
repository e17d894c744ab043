# What the Machine API warns of. Nothing is refused here.

check "processors" {
  assert {
    condition     = coalesce(var.provider_spec.numCPUs, 0) >= 2
    error_message = "providerSpec.numCPUs: ${coalesce(var.provider_spec.numCPUs, 0)} is missing or less than the minimum value (2): nodes may not boot correctly"
  }
}

check "memory" {
  assert {
    condition     = coalesce(var.provider_spec.memoryMiB, 0) >= 2048
    error_message = "providerSpec.memoryMiB: ${coalesce(var.provider_spec.memoryMiB, 0)} is missing or less than the recommended minimum value (2048): nodes may not boot correctly"
  }
}

check "disk" {
  assert {
    condition     = coalesce(var.provider_spec.diskGiB, 0) >= 120
    error_message = "providerSpec.diskGiB: ${coalesce(var.provider_spec.diskGiB, 0)} is missing or less than the recommended minimum (120): nodes may fail to start if disk size is too low"
  }
}

check "linked_clone" {
  assert {
    condition     = var.provider_spec.cloneMode != "linkedClone" || coalesce(var.provider_spec.diskGiB, 0) == 0
    error_message = "linkedClone clone mode is set. DiskGiB parameter will be ignored, disk size from template will be used."
  }
}

check "clone_mode" {
  assert {
    condition     = contains(["fullClone", "linkedClone"], var.provider_spec.cloneMode)
    error_message = "providerSpec.cloneMode: ${jsonencode(var.provider_spec.cloneMode)} is neither fullClone nor linkedClone, and taken for fullClone."
  }
}

check "snapshot" {
  assert {
    condition     = var.provider_spec.snapshot == "" || var.provider_spec.cloneMode == "linkedClone"
    error_message = "providerSpec.snapshot: ${jsonencode(var.provider_spec.snapshot)} has no effect, as only a linkedClone is made of a snapshot."
  }
}

check "linked_clone_of_a_snapshot" {
  assert {
    condition     = length(data.vsphere_snapshot.template) == 0 || local.snapshot != ""
    error_message = "providerSpec.snapshot: the template ${jsonencode(var.provider_spec.template)} has ${var.provider_spec.snapshot == "" ? "no snapshot" : "not exactly one snapshot ${jsonencode(var.provider_spec.snapshot)}"}: a full clone is made."
  }
}

# As the only one is found where there is one.
check "datacenter" {
  assert {
    condition     = var.provider_spec.workspace.datacenter != ""
    error_message = "providerSpec.workspace.datacenter: datacenter is unset: if more than one datacenter is present, VMs cannot be created"
  }
}

check "datastore" {
  assert {
    condition     = var.provider_spec.workspace.datastore != ""
    error_message = "providerSpec.workspace.datastore: datastore is unset: if more than one datastore is present, VMs cannot be created"
  }
}

check "resource_pool" {
  assert {
    condition     = var.provider_spec.workspace.resourcePool != ""
    error_message = "providerSpec.workspace.resourcePool: resourcePool is unset: if more than one resource pool is present, VMs cannot be created"
  }
}
