# What the Machine API warns of. Nothing is refused here.

check "subnet" {
  assert {
    condition     = var.provider_spec.subnet.id != "" || var.provider_spec.subnet.arn != "" || length(var.provider_spec.subnet.filters) > 0
    error_message = "providerSpec.subnet: No subnet has been provided. Instances may be created in an unexpected subnet and may not join the cluster."
  }
}

check "subnet_arn" {
  assert {
    condition     = var.provider_spec.subnet.arn == ""
    error_message = "can't use providerSpec.subnet.arn, only providerSpec.subnet.id or providerSpec.subnet.filters can be used to reference Subnet"
  }
}

check "subnet_filters" {
  assert {
    condition     = var.provider_spec.subnet.id == "" || length(var.provider_spec.subnet.filters) == 0
    error_message = "providerSpec.subnet.filters: they have no effect beside providerSpec.subnet.id"
  }
}

check "instance_profile" {
  assert {
    condition = (var.provider_spec.iamInstanceProfile == null ? false : (var.provider_spec.iamInstanceProfile.id != "" ||
    var.provider_spec.iamInstanceProfile.arn != "" || length(var.provider_spec.iamInstanceProfile.filters) > 0))
    error_message = "providerSpec.iamInstanceProfile: no IAM instance profile provided: nodes may be unable to join the cluster"
  }
}

check "instance_profile_arn" {
  assert {
    condition     = try(var.provider_spec.iamInstanceProfile.arn, "") == ""
    error_message = "can't use providerSpec.iamInstanceProfile.arn, only providerSpec.iamInstanceProfile.id can be used to reference IAMInstanceProfile"
  }
}

check "instance_profile_filters" {
  assert {
    condition     = length(try(var.provider_spec.iamInstanceProfile.filters, [])) == 0
    error_message = "can't use providerSpec.iamInstanceProfile.filters, only providerSpec.iamInstanceProfile.id can be used to reference IAMInstanceProfile"
  }
}

check "image_arn" {
  assert {
    condition     = var.provider_spec.ami.arn == ""
    error_message = "can't use providerSpec.ami.arn, only providerSpec.ami.id can be used to reference AMI"
  }
}

check "image_filters" {
  assert {
    condition     = length(var.provider_spec.ami.filters) == 0
    error_message = "can't use providerSpec.ami.filters, only providerSpec.ami.id can be used to reference AMI"
  }
}

check "security_groups" {
  assert {
    condition     = alltrue([for group in var.provider_spec.securityGroups : group.arn == "" && (group.id == "" || length(group.filters) == 0)])
    error_message = "providerSpec.securityGroups: arn has no effect, nor have filters beside id"
  }
}

check "security_group_names" {
  assert {
    condition     = alltrue([for group in var.provider_spec.securityGroups : group.id != "" || length(group.filters) > 0])
    error_message = "providerSpec.securityGroups: an entry with neither id nor filters has no effect"
  }
}

check "placement_group" {
  assert {
    condition     = var.provider_spec.placementGroupName == "" || var.provider_spec.placement.host == null
    error_message = "providerSpec.placementGroupName: it has no effect beside providerSpec.placement.host"
  }
}

check "load_balancers" {
  assert {
    condition     = alltrue([for balancer in var.provider_spec.loadBalancers : contains(["classic", "network"], balancer.type)])
    error_message = "providerSpec.loadBalancers: an entry whose type is neither classic nor network has no effect"
  }
}

check "volumes" {
  assert {
    condition     = alltrue([for device in var.provider_spec.blockDevices : device.ebs != null])
    error_message = "providerSpec.blockDevices: an entry without ebs has no effect"
  }
  assert {
    condition     = alltrue([for device in var.provider_spec.blockDevices : device.ebs == null || device.noDevice == null && device.virtualName == null])
    error_message = "providerSpec.blockDevices: noDevice and virtualName have no effect"
  }
  assert {
    condition     = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.deleteOnTermination, true)])
    error_message = "providerSpec.blockDevices: ebs.deleteOnTermination has no effect, volumes are deleted with the instance"
  }
  assert {
    condition     = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.iops, 0) == 0 || contains(["io1", "io2", "gp3"], try(device.ebs.volumeType, ""))])
    error_message = "providerSpec.blockDevices: ebs.iops has an effect on volumes of type io1, io2 and gp3 only"
  }
  assert {
    condition     = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.throughputMib, null) == null || try(device.ebs.volumeType, "") != ""])
    error_message = "providerSpec.blockDevices: ebs.throughputMib has no effect without ebs.volumeType"
  }
  assert {
    condition     = alltrue([for device in var.provider_spec.blockDevices : device.ebs == null ? true : length(device.ebs.kmsKey.filters) == 0 && (device.ebs.kmsKey.id == "" || device.ebs.kmsKey.arn == "")])
    error_message = "providerSpec.blockDevices: ebs.kmsKey.filters have no effect, nor has ebs.kmsKey.arn beside ebs.kmsKey.id"
  }
}

check "tags" {
  assert {
    condition = length(distinct(var.provider_spec.tags[*].name)) == length(var.provider_spec.tags)
    error_message = join("", ["providerSpec.tags: duplicated tag names (", join(",", distinct([
      for position, tag in var.provider_spec.tags : tag.name if contains(slice(var.provider_spec.tags[*].name, 0, position), tag.name)
    ])), "): only the first value will be used."])
  }
}
