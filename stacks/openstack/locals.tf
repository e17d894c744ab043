# What the program cannot compute is computed here, in the spelling that it hands on. A program has no conditions: it chooses with the
# numbers here, and what it looks for in vain has an id that nothing has.
locals {
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

  # A floating address of the first port.
  floating    = var.provider_spec.floatingIP != "" ? 1 : 0
  floats      = var.provider_spec.floatingIP != ""
  floating_ip = var.provider_spec.floatingIP == "" ? "none" : var.provider_spec.floatingIP

  # A server is what it was made as. What says nothing is left out, so that a field which a later stack adds changes no server.
  fixed = merge({ userData = var.provider_spec.userDataSecret != null }, { for name, value in var.provider_spec : name => value
    if !contains(["cloudsSecret", "cloudName", "userDataSecret"], name) && !contains(["null", "\"\"", "0", "false", "[]", "{}"], jsonencode(value))
  })
}

# The ports: of each network one, or one of each subnet where no network is named, and those of ports.
locals {
  whose = "Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid}"

  of_networks = flatten([for position, network in var.provider_spec.networks : [
    for some in "${network.uuid}${join("", values(network.filter))}" != "" ? [range(length(network.subnets))] : [for i in range(length(network.subnets)) : [i]] : {
      suffix      = ""
      description = local.whose
      given       = "${network.uuid}${join("", values(network.filter))}" != ""
      id          = network.uuid == "" ? network.filter.id : network.uuid
      filter      = network.filter
      missing     = "no single network is what networks[${position}] names"
      subnets = [for i in some : merge(network.subnets[i].filter, {
        id      = network.subnets[i].uuid == "" ? network.subnets[i].filter.id : network.subnets[i].uuid
        missing = "no single subnet is what networks[${position}].subnets[${i}] names"
      })]
      fixed_ips = []
      tags      = concat(network.portTags, flatten([for i in some : network.subnets[i].portTags]))
      up        = null
      mac       = null
      secure    = network.portSecurity
      vnic      = network.vnicType
      profile   = network.profile
      trunk     = var.provider_spec.trunk
      groups    = []
      pairs     = []
      shares    = !network.noAllowedAddressPairs
    }
  ]])
  of_ports = [for position, port in var.provider_spec.ports : {
    suffix      = port.nameSuffix
    description = trimspace("${port.description} Machine ${var.machine.uid}")
    given       = true
    id          = port.networkID
    filter      = {}
    missing     = "no network is what ports[${position}].networkID names"
    subnets     = []
    fixed_ips   = [for fixed in port.fixedIPs : { subnetId = fixed.subnetID, ipAddress = fixed.ipAddress == "" ? null : fixed.ipAddress }]
    tags        = port.tags
    up          = port.adminStateUp
    mac         = port.macAddress == "" ? null : port.macAddress
    secure      = port.portSecurity
    vnic        = port.vnicType
    profile     = port.profile
    trunk       = port.trunk == null ? var.provider_spec.trunk : port.trunk
    groups      = port.securityGroups
    pairs       = [for pair in port.allowedAddressPairs : { ipAddress = pair.ipAddress, macAddress = pair.macAddress == "" ? null : pair.macAddress }]
    shares      = false
  }]
  interfaces = concat(local.of_networks, local.of_ports)
  # What stands in the place of a port that there is not.
  none = {
    suffix = "none", description = "none", given = true, id = local.nothing, filter = {}, missing = "none", subnets = [], fixed_ips = [], tags = [], up = null, mac = null,
    secure = null, vnic = "", profile = {}, trunk = false, groups = [], pairs = [], shares = false
  }
  # A program has four ports, each of which may be none.
  count           = length(local.interfaces)
  others_of_first = local.count - 1
  ports = [for position, port in concat(local.interfaces, [for more in range(local.count, 4) : local.none]) : {
    wanted      = position < local.count
    name        = "${var.machine.name}-${port.suffix == "" ? tostring(position) : port.suffix}"
    description = port.description
    up          = port.up
    mac         = port.mac
    secure      = port.secure
    no_groups   = port.secure == false ? true : null
    tags        = distinct(concat(local.server_tags, port.tags, local.own_tags))
    fixed_ips   = port.fixed_ips
    pairs = port.secure == false ? [] : concat(
      port.pairs, [for address in port.shares && local.of_openstack ? sort(distinct(concat(var.cluster.api_vips, var.cluster.ingress_vips))) : [] : { ipAddress = address, macAddress = null }],
    )
    # Any Machine may use the addresses of the API and of ingress, which the Infrastructure of a cluster on OpenStack names. Where there is none, the
    # installer has reserved them with ports of these names.
    shared_pairs = port.shares && port.secure != false && !local.of_openstack ? 1 : 0
    binding = port.vnic == "" && !local.offloads[position] && !local.trusted[position] ? null : {
      vnicType = port.vnic == "" ? "normal" : port.vnic
      profile = !local.offloads[position] && !local.trusted[position] ? null : jsonencode(merge(
        local.offloads[position] ? { capabilities = ["switchdev"] } : {}, local.trusted[position] ? { trusted = true } : {},
      ))
    }
    trunk  = port.trunk
    trunks = port.trunk ? 1 : 0
    # 0 is no group, 1 those with an id, 2 those of the Machine and what is found.
    choice = port.secure == false ? 0 : length(port.groups) > 0 ? 1 : length(local.searched_groups) > 0 ? 2 : length(local.given_groups) > 0 ? 1 : 0
    groups = length(port.groups) > 0 ? port.groups : local.given_groups

    # What has an id is looked for by that alone.
    network = merge({ for name, empty in local.blank : name => port.id == "" ? lookup(port.filter, name, "") : empty }, {
      id      = port.given ? port.id : local.nothing
      project = port.id != "" ? "" : lookup(port.filter, "projectId", "") == "" ? lookup(port.filter, "tenantId", "") : port.filter.projectId
      within  = port.given ? 1 : 0
      missing = port.missing
    })
    # The port has an address in each subnet, of which there are two at most.
    by_subnet = length(port.subnets)
    subnets = [for subnet in concat(port.subnets, [for more in range(length(port.subnets), 2) : local.no_subnet]) : merge(
      { for name, empty in local.blank : name => subnet.id == "" ? subnet[name] : empty }, {
        id      = subnet.id
        project = subnet.id != "" ? "" : subnet.projectId == "" ? subnet.tenantId : subnet.projectId
        version = subnet.id != "" || subnet.ipVersion == 0 ? null : subnet.ipVersion
        missing = subnet.missing
    })]
    # By how many ports of the name are found: one, or none where none is wanted. Anything else stops a lookup.
    found = [for found in range(200) : position < local.count ? (found == 1 ? 1 : 9) : 0]
  }]
  no_subnet = merge(local.blank, { id = local.nothing, missing = "none" })
  # What OpenShift's provider knows of a profile.
  offloads = [for port in concat(local.interfaces, [for more in range(local.count, 4) : local.none]) : strcontains(lookup(port.profile, "capabilities", ""), "switchdev")]
  trusted  = [for port in concat(local.interfaces, [for more in range(local.count, 4) : local.none]) : lookup(port.profile, "trusted", "") == "true"]

  of_openstack = var.cluster.platform == "OpenStack"
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

  # Those with an id are taken as they are; three may be looked for.
  given_groups = distinct(compact([for group in var.provider_spec.securityGroups : group.uuid == "" ? group.filter.id : group.uuid]))
  searched_groups = [for position, group in var.provider_spec.securityGroups : merge(group.filter, {
    name     = group.name == "" ? group.filter.name : group.name
    project  = group.filter.projectId == "" ? group.filter.tenantId : group.filter.projectId
    position = position
  }) if "${group.uuid}${group.filter.id}" == ""]
  groups = {
    given = join(",", local.given_groups)
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
