# The volumes, with what is left out as null. One without a name is the image's root volume; so are those of the two names that EC2
# keeps for root volumes.
locals {
  volumes = [for device in var.provider_spec.blockDevices : {
    name       = device.deviceName
    encrypted  = device.ebs.encrypted
    iops       = device.ebs.iops > 0 ? device.ebs.iops : null
    throughput = device.ebs.throughputMib
    size       = device.ebs.volumeSize
    type       = device.ebs.volumeType == "" ? null : device.ebs.volumeType
    kms_key    = one(compact([device.ebs.kmsKey.id, device.ebs.kmsKey.arn]))
  }]

  root_names   = ["", "/dev/xvda", "/dev/sda1"]
  root_volume  = one([for volume in local.volumes : volume if contains(local.root_names, volume.name)])
  data_volumes = [for volume in local.volumes : volume if !contains(local.root_names, volume.name)]
}
