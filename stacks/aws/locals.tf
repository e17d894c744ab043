# What the program cannot compute is computed here, in the spelling that it hands on. A program has no conditions: it chooses with the
# numbers here, and what it looks for in vain has an id that nothing has.
locals {
  # By how many are found, or how long a text is: whether there is any.
  is_any = [for found in range(1000) : min(found, 1)]

  # An instance is what it was made as, but for its security groups. What says nothing is left out, so that a field which a later stack adds
  # changes no instance.
  fixed = { for name, value in var.provider_spec : name => value
    if !contains(["securityGroups", "credentialsSecret", "userDataSecret"], name) && !contains(["null", "\"\"", "0", "false", "[]", "{}"], jsonencode(value))
  }
}

# Tags of the instance and its volumes. The first of two tags of one name counts, and the cluster's last.
locals {
  uid_tag     = "machine-iac.io/machine-uid"
  cluster_tag = "kubernetes.io/cluster/${var.machine.cluster_id}"

  cluster_tags = [for tag in var.cluster.resource_tags : { name = tag.key, value = tag.value }]

  user_tags = { for name, values in { for tag in concat(var.provider_spec.tags, local.cluster_tags) : tag.name => tag.value... } :
    name => values[0] if !contains(["Name", local.uid_tag], name) && !startswith(name, "kubernetes.io/cluster/")
  }
  tags = merge(local.user_tags, {
    Name                = var.machine.name
    (local.cluster_tag) = "owned"
    (local.uid_tag)     = var.machine.uid
  })
}

# The instance's arguments. What is left out is null to the provider.
locals {
  market    = coalesce(var.provider_spec.marketType, var.provider_spec.spotMarketOptions == null ? "OnDemand" : "Spot")
  max_price = try(var.provider_spec.spotMarketOptions.maxPrice, "")
  # The families of IP addresses that the cluster has. A target group for IPv6 takes instances with a primary IPv6 address only.
  ipv6_primary = var.cluster.ip_family == "DualStackIPv6Primary"
  dual_stack   = local.ipv6_primary || var.cluster.ip_family == "DualStackIPv4Primary"

  # Beside a host, a placement group has no effect.
  grouped = var.provider_spec.placementGroupName != "" && var.provider_spec.placement.host == null

  instance = {
    key_name            = var.provider_spec.keyName == "" ? null : var.provider_spec.keyName
    profile             = one(compact(var.provider_spec.iamInstanceProfile[*].id))
    tenancy             = var.provider_spec.placement.tenancy == "" ? null : var.provider_spec.placement.tenancy
    host                = try(var.provider_spec.placement.host.dedicatedHost.id, null)
    placement_group     = local.grouped ? var.provider_spec.placementGroupName : null
    placement_partition = local.grouped ? var.provider_spec.placementGroupPartition : null
    public_ip           = var.provider_spec.publicIp
    market_options = local.market == "OnDemand" ? null : local.market == "CapacityBlock" ? { marketType = "capacity-block", spotOptions = null } : {
      marketType = "spot"
      spotOptions = {
        spotInstanceType             = "one-time"
        instanceInterruptionBehavior = "terminate"
        maxPrice                     = local.max_price == "" ? null : local.max_price
      }
    }
    reservation = var.provider_spec.capacityReservationId == "" ? null : {
      capacityReservationTarget = { capacityReservationId = var.provider_spec.capacityReservationId }
    }
    cpu = var.provider_spec.cpuOptions == null ? null : { amdSevSnp = try(var.provider_spec.cpuOptions.confidentialCompute, "") == "Disabled" ? "disabled" : "enabled" }
    metadata = !local.dual_stack && var.provider_spec.metadataServiceOptions.authentication == "" ? null : {
      httpEndpoint     = "enabled"
      httpProtocolIpv6 = local.dual_stack ? "enabled" : null
      httpTokens       = var.provider_spec.metadataServiceOptions.authentication == "" ? null : lower(var.provider_spec.metadataServiceOptions.authentication)
    }
    # Only names after the instance's id have records of both families.
    names        = !local.dual_stack ? null : { enableResourceNameDnsARecord = true, enableResourceNameDnsAaaaRecord = true, hostnameType = "resource-name" }
    primary_ipv6 = local.ipv6_primary ? true : null
    ipv6_count   = local.ipv6_primary ? 1 : null
  }
}

# The volumes. Entries without ebs make nothing, and what has no effect on a type is left out. The one without a name is the image's root
# volume; which of the others is it EC2 says by its name.
locals {
  volumes = [for device in var.provider_spec.blockDevices : {
    deviceName          = device.deviceName
    deleteOnTermination = true
    encrypted           = device.ebs.encrypted
    iops                = device.ebs.iops > 0 && contains(["io1", "io2", "gp3"], device.ebs.volumeType) ? device.ebs.iops : null
    throughput          = device.ebs.volumeType == "gp3" ? device.ebs.throughputMib : null
    volumeSize          = device.ebs.volumeSize
    volumeType          = device.ebs.volumeType == "" ? null : device.ebs.volumeType
    kmsKeyId            = try(coalesce(device.ebs.kmsKey.id, device.ebs.kmsKey.arn), null)
  } if device.ebs != null]

  root_volume = one([
    for volume in local.volumes : { for name, value in volume : name => value if name != "deviceName" } if volume.deviceName == ""
  ])
  data_volumes = [for volume in local.volumes : volume if volume.deviceName != ""]
}

# The subnet and the security groups: what is looked for, and what stands in place of an id where nothing is found. EC2's refusal repeats it.
locals {
  subnet = {
    # 0 is the one with the id, 1 what is found.
    choice  = var.provider_spec.subnet.id != "" ? 0 : 1
    id      = var.provider_spec.subnet.id
    missing = "no subnet matches subnet.filters in this region and placement.availabilityZone"
    filters = var.provider_spec.subnet.id == "" ? concat(
      [for filter in var.provider_spec.subnet.filters : { name = filter.name, values = filter.values }],
      [for zone in compact([var.provider_spec.placement.availabilityZone]) : { name = "availability-zone", values = [zone] }],
    ) : [{ name = "subnet-id", values = ["subnet-00000000"] }]
  }

  given_groups = distinct(compact(var.provider_spec.securityGroups[*].id))
  searched_groups = [for group in var.provider_spec.securityGroups : [for filter in group.filters : { name = filter.name, values = filter.values }]
  if group.id == "" && length(group.filters) > 0]
  groups = {
    any   = length(local.given_groups) + length(local.searched_groups) > 0 ? 1 : 0
    given = join(",", local.given_groups)
    # Three searches: whether it is wanted, what stands before what it finds, and its filters.
    searches = [for i in range(3) : {
      wanted  = i < length(local.searched_groups) ? 1 : 0
      comma   = i == 0 && length(local.given_groups) == 0 ? "" : ","
      filters = i < length(local.searched_groups) ? local.searched_groups[i] : [{ name = "group-id", values = ["sg-00000000"] }]
    }]
    missing = "no security group matches the filters of one of securityGroups"
  }
}
