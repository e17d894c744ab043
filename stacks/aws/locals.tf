# What the program cannot compute is computed here, in the spelling that it hands on. What it repeats it repeats for lists of these; a list of
# one or none is a condition. What is looked for in vain has an id that nothing has.
locals {
  # By how many are found, or how long a text is: whether there is any.
  is_any = [for found in range(1000) : min(found, 1)]
  # By how many texts there are with the word before them, from two on: the numbers of those behind it.
  numbers = [for texts in range(2, 34) : [for number in range(1, texts) : number]]

  # An instance is what it was made as, but for its security groups where no launch template has them. What says nothing is left out, so that a
  # field which a later stack adds changes no instance.
  may_change = concat(["credentialsSecret", "userDataSecret"], local.templated ? [] : ["securityGroups"])
  fixed = { for name, value in var.provider_spec : name => value
    if !contains(local.may_change, name) && !contains(["null", "\"\"", "0", "false", "[]", "{}"], jsonencode(value))
  }
}

# Tags of the instance and its volumes. The first of two tags of one name counts, and the cluster's last.
locals {
  uid_tag          = "machine-iac.io/machine-uid"
  installation_tag = "machine-iac.io/installation"
  cluster_tag      = "kubernetes.io/cluster/${var.machine.cluster_id}"

  cluster_tags = [for tag in var.cluster.resource_tags : { name = tag.key, value = tag.value }]

  user_tags = { for name, values in { for tag in concat(var.provider_spec.tags, local.cluster_tags) : tag.name => tag.value... } :
    name => values[0] if !contains(["Name", local.uid_tag, local.installation_tag], name) && !startswith(name, "kubernetes.io/cluster/")
  }
  own_tags = merge({
    Name                = var.machine.name
    (local.cluster_tag) = "owned"
    (local.uid_tag)     = var.machine.uid
  }, var.cluster.installation == "" ? {} : { (local.installation_tag) = var.cluster.installation })
  tags = merge(local.user_tags, local.own_tags)

  host_tags = { for name, values in { for tag in concat(try(local.dedicated_host.dynamicHostAllocation.tags, []), local.cluster_tags) : tag.name => tag.value... } :
    name => values[0] if !startswith(name, "kubernetes.io/cluster/")
  }
}

# Where EC2 puts the instance, and what of it only a launch template can say: affinity to a host, a network interface of type EFA, an address of a
# carrier.
locals {
  dedicated_host = try(var.provider_spec.placement.host.dedicatedHost, null)
  host_id        = try(local.dedicated_host.id, null)
  host_affinity  = try(var.provider_spec.placement.host.affinity, "") == "DedicatedHost"
  efa            = var.provider_spec.networkInterfaceType == "EFA"
  # Zones at the edge of a carrier's network are called as us-east-1-wl1-bos-wlz-1; addresses there are the carrier's.
  carrier_ip = strcontains(var.provider_spec.placement.availabilityZone, "-wlz-") && var.provider_spec.publicIp != null
  templated  = local.host_affinity || local.efa || local.carrier_ip

  # A host for this instance alone, and its zone's subnet where the providerSpec does not name a zone.
  hosts = [for strategy in [try(local.dedicated_host.allocationStrategy, "")] : {
    zone      = var.provider_spec.placement.availabilityZone
    of_subnet = var.provider_spec.placement.availabilityZone == "" ? [1] : []
    tags      = merge(local.host_tags, local.own_tags)
  } if strategy == "Dynamic"]
  zone_searches = var.recorded == null ? flatten(local.hosts[*].of_subnet) : []

  # The numbers by which the program chooses: 0 is the instance's own argument, 1 nothing, since the launch template has it.
  template_choice = local.templated ? 1 : 0
  templates = [for templated in [local.templated] : {
    affinity   = local.host_affinity ? "host" : null
    group      = local.grouped ? var.provider_spec.placementGroupName : null
    partition  = local.grouped ? var.provider_spec.placementGroupPartition : null
    tenancy    = var.provider_spec.placement.tenancy == "" ? null : var.provider_spec.placement.tenancy
    type       = local.efa ? "efa" : null
    ipv6_count = local.ipv6_primary ? 1 : null
    primary    = local.ipv6_primary ? "true" : null
    public     = local.carrier_ip || var.provider_spec.publicIp == null ? null : tostring(var.provider_spec.publicIp)
    carrier    = local.carrier_ip ? tostring(var.provider_spec.publicIp) : null
  } if templated]

  # The load balancers that send requests to the instance.
  classic_load_balancers = sort(distinct([for balancer in var.provider_spec.loadBalancers : balancer.name if balancer.type == "classic"]))
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

  # Whether EC2 may end the instance to have its capacity back.
  spot = local.market == "Spot"

  instance = {
    key_name            = var.provider_spec.keyName == "" ? null : var.provider_spec.keyName
    profile             = one(compact(var.provider_spec.iamInstanceProfile[*].id))
    tenancy             = local.templated || var.provider_spec.placement.tenancy == "" ? null : var.provider_spec.placement.tenancy
    placement_group     = !local.templated && local.grouped ? var.provider_spec.placementGroupName : null
    placement_partition = !local.templated && local.grouped ? var.provider_spec.placementGroupPartition : null
    public_ip           = local.templated ? null : var.provider_spec.publicIp
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
    primary_ipv6 = local.ipv6_primary && !local.templated ? true : null
    ipv6_count   = local.ipv6_primary && !local.templated ? 1 : null
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
    id = var.provider_spec.subnet.id
    searches = var.provider_spec.subnet.id != "" ? [] : [concat(
      [for filter in var.provider_spec.subnet.filters : { name = filter.name, values = filter.values }],
      [for zone in compact([var.provider_spec.placement.availabilityZone]) : { name = "availability-zone", values = [zone] }],
    )]
    missing = "no subnet IDs were found: no subnet of this region and placement.availabilityZone matches subnet.filters"
  }

  given_groups = distinct(compact(var.provider_spec.securityGroups[*].id))
  searched_groups = [for group in var.provider_spec.securityGroups : [for filter in group.filters : { name = filter.name, values = filter.values }]
  if group.id == "" && length(group.filters) > 0]
  groups = {
    # 0 is none, for the network's default one, 1 those with an id and those that are found.
    choice  = length(local.given_groups) + length(local.searched_groups) > 0 ? 1 : 0
    missing = "no security group found: none matches the filters of securityGroups"
  }
}
