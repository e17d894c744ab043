# The disks, with the full names of their keys.
locals {
  disks = [for position, disk in var.provider_spec.disks : merge(disk, {
    name   = "${var.machine.name}-${position}"
    type   = disk.type == "" ? "pd-standard" : disk.type
    sizeGb = disk.sizeGb == 0 ? null : disk.sizeGb
    key = try(format("projects/%s/locations/%s/keyRings/%s/cryptoKeys/%s",
      disk.encryptionKey.kmsKey.projectID == "" ? var.provider_spec.projectID : disk.encryptionKey.kmsKey.projectID,
    disk.encryptionKey.kmsKey.location, disk.encryptionKey.kmsKey.keyRing, disk.encryptionKey.kmsKey.name), null)
    key_account = try(coalesce(disk.encryptionKey.kmsKeyServiceAccount), null)
  })]

  boot_disk  = one([for disk in local.disks : disk if disk.boot])
  data_disks = { for disk in local.disks : disk.name => disk if !disk.boot }
}

resource "google_compute_disk" "data" {
  for_each = local.data_disks

  name    = each.key
  project = var.provider_spec.projectID
  zone    = var.provider_spec.zone
  type    = each.value.type
  size    = each.value.sizeGb
  image   = each.value.image == "" ? null : each.value.image
  labels  = merge(each.value.labels, local.own_labels)

  dynamic "disk_encryption_key" {
    for_each = each.value.key[*]

    content {
      kms_key_self_link       = disk_encryption_key.value
      kms_key_service_account = each.value.key_account
    }
  }

  dynamic "params" {
    for_each = length(local.resource_manager_tags) == 0 ? [] : [local.resource_manager_tags]

    content {
      resource_manager_tags = params.value
    }
  }

  lifecycle {
    ignore_changes = [type, size, image, labels, disk_encryption_key, params]
  }
}
