# What the server boots from, and its other disks.
locals {
  uuid = "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"

  # A root volume without a size is none, but for its image.
  root_volume = try(var.provider_spec.rootVolume.diskSize, 0) > 0 ? var.provider_spec.rootVolume : null
  image_asked = try(var.provider_spec.rootVolume.sourceUUID, "") == "" ? var.provider_spec.image : var.provider_spec.rootVolume.sourceUUID
  image = {
    name = local.image_asked
    id   = can(regex(local.uuid, local.image_asked)) ? local.image_asked : null
  }
  # Without block devices the server makes its disk from the image. With some, each disk is one of them, and needs the image's id.
  boots_image = local.root_volume == null && length(var.provider_spec.additionalBlockDevices) == 0
  searched    = data.openstack_images_image_ids_v2.boot[*].ids
  image_id = (
    local.image.id != null ? local.image.id :
    var.recorded != null ? var.recorded.image_id :
    try(one(local.searched[0]), null) == null ? "no single image is called ${local.image.name}" : one(local.searched[0])
  )

  root = local.root_volume == null ? {} : {
    root = { size = local.root_volume.diskSize, type = local.root_volume.volumeType, zone = local.root_volume.availabilityZone, image = local.image_id }
  }
  volumes = merge(local.root, {
    for device in var.provider_spec.additionalBlockDevices : device.name => {
      size = device.sizeGiB, type = try(device.storage.volume.type, ""), zone = try(device.storage.volume.availabilityZone, ""), image = null
    } if device.storage.type == "Volume"
  })

  boot_devices = [local.root_volume == null ?
    { source = "image", destination = "local", id = local.image_id, size = null } :
    { source = "volume", destination = "volume", id = try(openstack_blockstorage_volume_v3.disk["root"].id, null), size = null }
  ]
  block_devices = local.boots_image ? [] : concat(local.boot_devices, [
    for device in var.provider_spec.additionalBlockDevices : device.storage.type == "Volume" ?
    { source = "volume", destination = "volume", id = openstack_blockstorage_volume_v3.disk[device.name].id, size = null } :
    { source = "blank", destination = "local", id = null, size = device.sizeGiB }
  ])
}

data "openstack_images_image_ids_v2" "boot" {
  count = var.recorded != null || local.boots_image || local.image.id != null ? 0 : 1

  name = local.image.name
}

resource "openstack_blockstorage_volume_v3" "disk" {
  for_each = local.volumes

  name              = "${var.machine.name}-${each.key}"
  description       = "${each.key} of Machine ${var.machine.namespace}/${var.machine.name}"
  size              = each.value.size
  image_id          = each.value.image
  volume_type       = each.value.type == "" ? null : each.value.type
  availability_zone = each.value.zone == "" ? local.zone : each.value.zone
  metadata          = local.own_metadata

  lifecycle {
    ignore_changes = [name, description, size, image_id, volume_type, availability_zone, metadata]
  }
}
