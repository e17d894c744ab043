# What the Machine API warns of. Nothing is refused here.

check "service_account" {
  assert {
    condition     = length(var.provider_spec.serviceAccounts) > 0
    error_message = "providerSpec.serviceAccounts: no service account provided: nodes may be unable to join the cluster"
  }
}

check "disks" {
  assert {
    condition     = alltrue([for disk in var.provider_spec.disks : !disk.boot || disk.image != ""])
    error_message = "providerSpec.disks[].image: the boot disk has none, so that it gets the image of OpenShift 4.14, as from the Machine API Operator"
  }

  assert {
    condition     = alltrue([for disk in var.provider_spec.disks : disk.autoDelete])
    error_message = "providerSpec.disks[].autoDelete: it is not true, so that the disk stays when the Machine is deleted"
  }

  assert {
    condition     = alltrue([for disk in var.provider_spec.disks : disk.encryptionKey == null ? true : disk.encryptionKey.kmsKey != null])
    error_message = "providerSpec.disks[].encryptionKey: there is no kmsKey, so that the disk is encrypted with a key of Google"
  }
}

check "deletion_protection" {
  assert {
    condition     = !var.provider_spec.deletionProtection
    error_message = "providerSpec.deletionProtection: the Machine cannot be deleted before the instance's protection is removed: gcloud compute instances update NAME --no-deletion-protection"
  }
}
