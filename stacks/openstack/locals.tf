# What the program cannot compute is computed here, in the spelling that it hands on. A program has no conditions: it chooses with the
# numbers here, and what it looks for in vain has an id that nothing has.
locals {
  # One of them is there.
  network = one(var.provider_spec.networks)
  own     = one(var.provider_spec.ports)

  # OpenShift's installer finds what belongs to a cluster by this one when it destroys it. Neutron has tags, the others metadata.
  metadata = merge(var.provider_spec.serverMetadata, {
    openshiftClusterID           = var.machine.cluster_id
    "machine-iac.io_machine-uid" = var.machine.uid
  })
  # OpenShift's provider adds these two. Nova takes 50 tags of 60 characters.
  default_tags = [for tag in ["cluster-api-provider-openstack", "${var.machine.namespace}-${var.machine.cluster_id}"] : tag if length(tag) <= 60]
  all_tags     = distinct(concat(var.provider_spec.tags, local.default_tags))
  server_tags  = slice(local.all_tags, 0, min(50, length(local.all_tags)))
  own_tags     = ["openshiftClusterID=${var.machine.cluster_id}", "machine-uid=${var.machine.uid}"]

  server = {
    flavor       = var.provider_spec.flavor
    key_pair     = var.provider_spec.keyName == "" ? null : var.provider_spec.keyName
    zone         = var.provider_spec.availabilityZone == "" ? null : var.provider_spec.availabilityZone
    config_drive = var.provider_spec.configDrive
    tags         = local.server_tags
  }
  # 0 is no server group, 1 one by its id, 2 one by its name, which is made where there is none.
  grouped    = var.provider_spec.serverGroupID != "" ? 1 : var.provider_spec.serverGroupName != "" ? 2 : 0
  group_id   = var.provider_spec.serverGroupID
  group_name = local.grouped == 2 ? var.provider_spec.serverGroupName : ""

  # A trunk and a floating address of the port; 0 and false are none.
  trunk       = try(local.own.trunk, null) == null ? var.provider_spec.trunk : local.own.trunk
  trunks      = local.trunk ? 1 : 0
  floating    = var.provider_spec.floatingIP != "" ? 1 : 0
  floats      = var.provider_spec.floatingIP != ""
  floating_ip = var.provider_spec.floatingIP == "" ? "none" : var.provider_spec.floatingIP

  # A server is what it was made as. What says nothing is left out, so that a field which a later stack adds changes no server.
  fixed = merge({ userData = var.provider_spec.userDataSecret != null }, { for name, value in var.provider_spec : name => value
    if !contains(["cloudsSecret", "cloudName", "userDataSecret"], name) && !contains(["null", "\"\"", "0", "false", "[]", "{}"], jsonencode(value))
  })
}

# The port.
locals {
  suffix   = try(local.own.nameSuffix, "") == "" ? "0" : local.own.nameSuffix
  secure   = local.own == null ? local.network.portSecurity : local.own.portSecurity
  insecure = local.secure == null ? false : !local.secure
  vnic     = local.own == null ? local.network.vnicType : local.own.vnicType
  asked    = local.own == null ? local.network.profile : local.own.profile
  # What OpenShift's provider knows of a profile.
  profile = merge(
    strcontains(lookup(local.asked, "capabilities", ""), "switchdev") ? { capabilities = ["switchdev"] } : {},
    lookup(local.asked, "trusted", "") == "true" ? { trusted = true } : {},
  )
  whose = "Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid}"

  port = {
    name        = "${var.machine.name}-${local.suffix}"
    description = local.own == null ? local.whose : trimspace("${local.own.description} Machine ${var.machine.uid}")
    up          = try(local.own.adminStateUp, null)
    mac         = try(local.own.macAddress, "") == "" ? null : local.own.macAddress
    secure      = local.secure
    no_groups   = local.insecure ? true : null
    tags        = concat(local.server_tags, try(local.network.portTags, []), flatten(try(local.network.subnets[*].portTags, [])), try(local.own.tags, []), local.own_tags)
    fixed_ips   = [for fixed in try(local.own.fixedIPs, []) : { subnetId = fixed.subnetID, ipAddress = fixed.ipAddress == "" ? null : fixed.ipAddress }]
    pairs = local.insecure ? [] : concat(
      [for pair in try(local.own.allowedAddressPairs, []) : { ipAddress = pair.ipAddress, macAddress = pair.macAddress == "" ? null : pair.macAddress }],
      [for address in local.shares ? sort(distinct(concat(var.cluster.api_vips, var.cluster.ingress_vips))) : [] : { ipAddress = address, macAddress = null }],
    )
    binding = local.vnic == "" && length(local.profile) == 0 ? null : {
      vnicType = local.vnic == "" ? "normal" : local.vnic
      profile  = length(local.profile) == 0 ? null : jsonencode(local.profile)
    }
  }

  # Any Machine may use the addresses of the API and of ingress, which the Infrastructure names. Where there is none, the installer has
  # reserved them with ports of these names.
  shares       = !local.insecure && !try(local.network.noAllowedAddressPairs, true)
  shared_pairs = local.shares && var.cluster.platform == "" ? 1 : 0
  shared = {
    api     = "${var.machine.cluster_id}-api-port"
    ingress = "${var.machine.cluster_id}-ingress-port"
  }
}

# What is looked for, and what stands in place of an id where not one thing is found: the refusal of the cloud repeats it.
locals {
  nothing = "00000000-0000-0000-0000-000000000000"
  blank   = { for name in ["name", "description", "tags", "tagsAny", "notTags", "notTagsAny", "gateway_ip", "cidr", "ipv6AddressMode", "ipv6RaMode"] : name => "" }
  # By how many are found: whether that is one, and whether it is any.
  is_one    = [for found in range(200) : found == 1 ? 1 : 0]
  is_any    = [for found in range(200) : min(found, 1)]
  up_to_two = [for found in range(200) : min(found, 2)]

  # What has an id is looked for by that alone.
  network_id = local.own != null ? local.own.networkID : local.network.uuid == "" ? local.network.filter.id : local.network.uuid
  networks = merge({ for name, none in local.blank : name => local.network_id == "" ? try(local.network.filter[name], "") : none }, {
    id      = local.network_given ? local.network_id : local.nothing
    project = local.network_id != "" || local.own != null ? "" : local.network.filter.projectId == "" ? local.network.filter.tenantId : local.network.filter.projectId
    within  = local.network_given ? 1 : 0
    missing = local.own == null ? "no single network is what networks[0] names" : "no network is what ports[0].networkID names"
  })
  network_given = local.own == null ? "${local.network.uuid}${join("", values(local.network.filter))}" != "" : true

  # The port has an address in each subnet, of which there are two at most.
  by_subnet = length(try(local.network.subnets, []))
  asked_subnets = [for subnet in try(local.network.subnets, []) : merge(subnet.filter, {
    id = subnet.uuid == "" ? subnet.filter.id : subnet.uuid
  })]
  subnets = [for i in range(2) : i >= local.by_subnet ? merge(local.blank, { id = local.nothing, project = "", version = null, missing = "none" }) : merge(
    { for name, none in local.blank : name => local.asked_subnets[i].id == "" ? local.asked_subnets[i][name] : none }, {
      id      = local.asked_subnets[i].id
      project = local.asked_subnets[i].id != "" ? "" : local.asked_subnets[i].projectId == "" ? local.asked_subnets[i].tenantId : local.asked_subnets[i].projectId
      version = local.asked_subnets[i].id != "" || local.asked_subnets[i].ipVersion == 0 ? null : local.asked_subnets[i].ipVersion
      missing = "no single subnet is what networks[0].subnets[${i}] names"
    }
  )]

  # Those with an id are taken as they are; three may be looked for.
  own_groups   = length(try(local.own.securityGroups, [])) > 0
  given_groups = distinct(local.own_groups ? local.own.securityGroups : compact([for group in var.provider_spec.securityGroups : group.uuid == "" ? group.filter.id : group.uuid]))
  searched_groups = [for position, group in var.provider_spec.securityGroups : merge(group.filter, {
    name     = group.name == "" ? group.filter.name : group.name
    project  = group.filter.projectId == "" ? group.filter.tenantId : group.filter.projectId
    position = position
  }) if !local.own_groups && "${group.uuid}${group.filter.id}" == ""]
  groups = {
    # 0 is none, 1 those with an id, 2 those and what is found.
    choice = local.insecure ? 0 : length(local.searched_groups) > 0 ? 2 : length(local.given_groups) > 0 ? 1 : 0
    ids    = local.given_groups
    given  = join(",", local.given_groups)
    searched = [for i in range(3) : i >= length(local.searched_groups) ? merge(local.blank, { id = local.nothing, project = "", used = 0, before = "", missing = "none" }) : merge(
      { for name, none in local.blank : name => try(local.searched_groups[i][name], "") }, {
        id      = ""
        project = local.searched_groups[i].project
        used    = 1
        before  = i == 0 && length(local.given_groups) == 0 ? "" : ","
        missing = "no security group is what securityGroups[${local.searched_groups[i].position}] names"
      }
    )]
  }
}

# What the server boots from, and its other disks. Nova makes the volumes, but for a root volume in a zone of its own.
locals {
  # A root volume without a size is none, but for its image.
  root_size   = try(var.provider_spec.rootVolume.diskSize, 0)
  image_asked = try(var.provider_spec.rootVolume.sourceUUID, "") == "" ? var.provider_spec.image : var.provider_spec.rootVolume.sourceUUID
  image = {
    searched = can(regex("^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$", local.image_asked)) ? 0 : 1
    asked    = local.image_asked
    missing  = "no single image is called ${local.image_asked}"
  }

  # The server's disk is a volume, or else one of its host.
  boots_volume = local.root_size == 0 ? 0 : 1
  root = {
    destination = local.root_size == 0 ? "local" : "volume"
    size        = local.root_size == 0 ? null : local.root_size
    type        = local.root_size == 0 ? null : var.provider_spec.rootVolume.volumeType == "" ? null : var.provider_spec.rootVolume.volumeType
  }
  root_zone = local.root_size == 0 ? "" : var.provider_spec.rootVolume.availabilityZone
  disk = {
    wanted = local.root_zone != ""
    choice = local.root_zone != "" ? 1 : 0
    name   = "${var.machine.name}-root"
    size   = max(1, local.root_size)
    zone   = local.root_zone == "" ? null : local.root_zone
  }
  # Without other disks, Nova makes a disk of its host from the image by itself.
  disks = local.root_size == 0 && length(var.provider_spec.additionalBlockDevices) == 0 ? 0 : 1 + length(var.provider_spec.additionalBlockDevices)
  others = concat([for device in var.provider_spec.additionalBlockDevices : {
    sourceType          = "blank"
    destinationType     = device.storage.type == "Volume" ? "volume" : "local"
    volumeSize          = device.sizeGiB
    volumeType          = device.storage.type == "Local" ? null : try(device.storage.volume.type == "" ? null : device.storage.volume.type, null)
    bootIndex           = -1
    deleteOnTermination = true
  }], [for more in range(length(var.provider_spec.additionalBlockDevices), 4) : null])
}
