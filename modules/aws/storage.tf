# The volumes, with what is left out as null, and what has no effect on a type left out. Entries without ebs make nothing. The one without a
# name is the image's root volume.
locals {
  volumes = [for device in var.provider_spec.blockDevices : {
    name       = device.deviceName
    encrypted  = device.ebs.encrypted
    iops       = device.ebs.iops > 0 && contains(["io1", "io2", "gp3"], device.ebs.volumeType) ? device.ebs.iops : null
    throughput = device.ebs.volumeType == "gp3" ? device.ebs.throughputMib : null
    size       = device.ebs.volumeSize
    type       = device.ebs.volumeType == "" ? null : device.ebs.volumeType
    kms_key    = try(coalesce(device.ebs.kmsKey.id, device.ebs.kmsKey.arn), null)
  } if device.ebs != null]

  root_volume  = one([for volume in local.volumes : volume if volume.name == ""])
  data_volumes = [for volume in local.volumes : volume if volume.name != ""]
}
