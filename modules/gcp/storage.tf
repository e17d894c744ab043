# The disks, with the full names of their images and keys.
locals {
  # The boot disk's image where none is given, as the Machine API Operator fills it in: OpenShift 4.14's.
  arm           = contains(["t2a", "c4a", "n4a"], split("-", var.provider_spec.machineType)[0])
  default_image = "projects/rhcos-cloud/global/images/rhcos-414-92-202307070025-0-gcp-${local.arm ? "aarch64" : "x86-64"}"

  disks = [for position, disk in var.provider_spec.disks : merge(disk, {
    name   = "${var.machine.name}-${position}"
    type   = disk.type == "" ? "pd-standard" : disk.type
    sizeGb = disk.sizeGb == 0 ? null : disk.sizeGb
    labels = merge(var.cluster.resource_labels, disk.labels, local.own_labels)
    # A name alone is an image of the instance's project.
    image = disk.image == "" ? (disk.boot ? local.default_image : null) : strcontains(disk.image, "/") ? disk.image : "projects/${var.provider_spec.projectID}/global/images/${disk.image}"
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
  image   = each.value.image
  labels  = each.value.labels

  # A disk that should stay is forgotten when the Machine is deleted.
  deletion_policy = each.value.autoDelete ? null : "ABANDON"

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
