# What the program cannot compute is computed here, in the spelling that it hands on. What it repeats it repeats for lists of these; a list of
# one or none is a condition. What is looked for in vain has an id that nothing has.
locals {
  # OpenShift's installer finds what belongs to a cluster by this one when it destroys it. Neutron has tags, the others metadata.
  metadata = merge({
    openshiftClusterID           = var.machine.cluster_id
    "machine-iac.io_machine-uid" = var.machine.uid
  }, var.cluster.installation == "" ? {} : { "machine-iac.io_installation" = var.cluster.installation })
  # OpenShift's provider adds these two. Nova takes 50 tags of 60 characters.
  default_tags = [for tag in ["cluster-api-provider-openstack", "${var.machine.namespace}-${var.machine.cluster_id}"] : tag if length(tag) <= 60]
  all_tags     = distinct(concat(var.provider_spec.tags, local.default_tags))
  server_tags  = slice(local.all_tags, 0, min(50, length(local.all_tags)))
  own_tags     = ["openshiftClusterID=${var.machine.cluster_id}", "machine-uid=${var.machine.uid}"]

  zone = var.provider_spec.availabilityZone == "" ? null : var.provider_spec.availabilityZone
  server = {
    flavor       = var.provider_spec.flavor
    key_pair     = var.provider_spec.keyName == "" ? null : var.provider_spec.keyName
    zone         = local.zone
    config_drive = var.provider_spec.configDrive
    tags         = local.server_tags
    metadata     = merge(var.provider_spec.serverMetadata, local.metadata)
  }
  # The server group that has the server: one that is made where there is none of its name, one by its id, or one by its id whose name is compared.
  shared_groups   = var.provider_spec.serverGroupName != "" && var.provider_spec.serverGroupID == "" ? [var.provider_spec.serverGroupName] : []
  compared_groups = var.provider_spec.serverGroupName != "" && var.provider_spec.serverGroupID != "" ? [var.provider_spec.serverGroupName] : []
  group = {
    id       = var.provider_spec.serverGroupID
    hints    = "${var.provider_spec.serverGroupID}${var.provider_spec.serverGroupName}" == "" ? [] : [1]
    mismatch = "Name of a ${var.provider_spec.serverGroupID} server group does not match defined name ${var.provider_spec.serverGroupName}"
    # By how many groups have the id or the name, and how many the name: whether they are the same.
    same = [for either in range(60 * length(local.compared_groups)) : [for named in range(60) : either == named && named > 0 ? 1 : 0]]
  }

  # A floating address of the first port.
  floating = compact([var.provider_spec.floatingIP])

  # A server is what it was made as. What says nothing is left out, so that a field which a later stack adds changes no server.
  fixed = merge({ userData = var.provider_spec.userDataSecret != null }, { for name, value in var.provider_spec : name => value
    if !contains(["cloudsSecret", "cloudName", "userDataSecret"], name) && !contains(["null", "\"\"", "0", "false", "[]", "{}"], jsonencode(value))
  })
}

# What is looked for. What has an id is not, but for a subnet whose network is not named.
locals {
  # By how many are found: whether that is one, and whether it is any.
  is_one = [for found in range(200) : found == 1 ? 1 : 0]
  is_any = [for found in range(200) : min(found, 1)]

  networks = [for position, network in var.provider_spec.networks : {
    given = "${network.uuid}${join("", values(network.filter))}" != ""
    id    = network.uuid == "" ? network.filter.id : network.uuid
  }]
  searched_networks = [for position, network in var.provider_spec.networks : merge(network.filter, {
    position  = position
    projectId = network.filter.projectId == "" ? network.filter.tenantId : network.filter.projectId
    missing   = "no single network is what networks[${position}] names"
  }) if local.networks[position].given && local.networks[position].id == ""]
  network_at = { for at, network in local.searched_networks : tostring(network.position) => at }

  any_subnet = {
    id   = "", name = "", description = "", tenantId = "", projectId = "", tags = "", tagsAny = "", notTags = "", notTagsAny = "", ipVersion = 0, gateway_ip = "",
    cidr = "", ipv6AddressMode = "", ipv6RaMode = ""
  }
  # Each has what names its network: an id, or the number of one that is looked for.
  subnets = flatten(concat(
    [for position, network in var.provider_spec.networks : [for i, subnet in network.subnets : merge(subnet.filter, {
      key     = "${position}.${i}"
      id      = subnet.uuid == "" ? subnet.filter.id : subnet.uuid
      within  = local.networks[position].given
      network = local.networks[position].id
      in      = [for at in [lookup(local.network_at, tostring(position), -1)] : at if at >= 0]
      missing = "no single subnet is what networks[${position}].subnets[${i}] names"
    })]],
    [for position, port in var.provider_spec.ports : [for i, fixed in port.fixedIPs : merge(local.any_subnet, {
      key     = "port${position}.${i}"
      id      = fixed.subnetID
      within  = port.networkID != ""
      network = port.networkID
      in      = []
      missing = "no single subnet is what ports[${position}].fixedIPs[${i}] names"
    })]],
  ))
  searched_subnets = [for subnet in local.subnets : merge(subnet, {
    # What has an id is looked for by that alone.
    project = subnet.id != "" ? "" : subnet.projectId == "" ? subnet.tenantId : subnet.projectId
    version = subnet.id != "" || subnet.ipVersion == 0 ? null : subnet.ipVersion
    filter  = { for name, value in subnet : name => subnet.id == "" ? value : "" if contains(["name", "description", "tags", "tagsAny", "notTags", "notTagsAny", "gateway_ip", "cidr", "ipv6AddressMode", "ipv6RaMode"], name) }
  }) if subnet.id == "" || !subnet.within]
  subnet_at = { for at, subnet in local.searched_subnets : subnet.key => at }
  subnet_id = { for subnet in local.subnets : subnet.key => subnet.id }

  # Those with an id are taken as they are.
  given_groups = distinct(compact([for group in var.provider_spec.securityGroups : group.uuid == "" ? group.filter.id : group.uuid]))
  searched_groups = [for position, group in var.provider_spec.securityGroups : merge(group.filter, {
    name      = group.name == "" ? group.filter.name : group.name
    projectId = group.filter.projectId == "" ? group.filter.tenantId : group.filter.projectId
    missing   = "no security group is what securityGroups[${position}] names"
  }) if "${group.uuid}${group.filter.id}" == ""]
}

# The ports: of each network one, or one of each subnet where no network is named, and those of ports.
locals {
  whose = "Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid}"

  of_networks = flatten([for position, network in var.provider_spec.networks : [
    for keys in local.networks[position].given ? [[for i in range(length(network.subnets)) : "${position}.${i}"]] : [for i in range(length(network.subnets)) : ["${position}.${i}"]] : {
      suffix      = ""
      description = local.whose
      network     = local.networks[position].id
      in          = [for at in [lookup(local.network_at, tostring(position), -1)] : at if at >= 0]
      of          = local.networks[position].given ? [] : [local.subnet_at[keys[0]]]
      fixed       = [for key in keys : { key = key, address = "" }]
      tags        = concat(network.portTags, flatten([for key in keys : network.subnets[tonumber(split(".", key)[1])].portTags]))
      up          = null
      mac         = ""
      secure      = network.portSecurity
      vnic        = network.vnicType
      profile     = network.profile
      trunk       = var.provider_spec.trunk
      groups      = []
      pairs       = [for address in local.of_openstack && !network.noAllowedAddressPairs ? local.virtual_addresses : [] : { ipAddress = address, macAddress = "" }]
      shares      = !network.noAllowedAddressPairs
    }
  ]])
  of_ports = [for position, port in var.provider_spec.ports : {
    suffix      = port.nameSuffix
    description = trimspace("${port.description} Machine ${var.machine.uid}")
    network     = port.networkID
    in          = []
    of          = port.networkID == "" ? [local.subnet_at["port${position}.0"]] : []
    fixed       = [for i, fixed in port.fixedIPs : { key = "port${position}.${i}", address = fixed.ipAddress }]
    tags        = port.tags
    up          = port.adminStateUp
    mac         = port.macAddress
    secure      = port.portSecurity
    vnic        = port.vnicType
    profile     = port.profile
    trunk       = port.trunk == null ? var.provider_spec.trunk : port.trunk
    groups      = port.securityGroups
    pairs       = port.allowedAddressPairs
    shares      = false
  }]

  ports = [for position, port in concat(local.of_networks, local.of_ports) : {
    name        = "${var.machine.name}-${port.suffix == "" ? tostring(position) : port.suffix}"
    description = port.description
    network     = port.network
    in          = port.in
    of          = port.of
    up          = port.up
    mac         = port.mac == "" ? null : port.mac
    secure      = port.secure
    no_groups   = port.secure == false ? true : null
    tags        = distinct(concat(local.server_tags, port.tags, local.own_tags))
    fixed_ips = [for fixed in port.fixed : {
      subnet  = local.subnet_id[fixed.key]
      found   = [for at in [lookup(local.subnet_at, fixed.key, -1)] : at if at >= 0]
      address = fixed.address == "" ? null : fixed.address
    }]
    pairs = port.secure == false ? [] : [for pair in port.pairs : { ipAddress = pair.ipAddress, macAddress = pair.macAddress == "" ? null : pair.macAddress }]
    # Whether it may use the addresses of the ports that the installer has reserved.
    shares = port.shares && port.secure != false && length(local.reserved) > 0 ? 1 : 0
    binding = port.vnic == "" && !local.offloads[position] && !local.trusted[position] ? null : {
      vnicType = port.vnic == "" ? "normal" : port.vnic
      profile = !local.offloads[position] && !local.trusted[position] ? null : jsonencode(merge(
        local.offloads[position] ? { capabilities = ["switchdev"] } : {}, local.trusted[position] ? { trusted = true } : {},
      ))
    }
    trunk = port.trunk
    # 0 is no group, 1 those with an id, 2 those of the Machine and what is found.
    choice = port.secure == false ? 0 : length(port.groups) > 0 ? 1 : length(local.searched_groups) > 0 ? 2 : length(local.given_groups) > 0 ? 1 : 0
    groups = length(port.groups) > 0 ? port.groups : local.given_groups
  }]
  # What OpenShift's provider knows of a profile.
  offloads = [for port in concat(local.of_networks, local.of_ports) : strcontains(lookup(port.profile, "capabilities", ""), "switchdev")]
  trusted  = [for port in concat(local.of_networks, local.of_ports) : lookup(port.profile, "trusted", "") == "true"]

  trunks = [for position, port in local.ports : { port = position, name = port.name, tags = port.tags } if port.trunk]

  # The ports of networks may use the addresses of the API and of ingress, which the Infrastructure of a cluster on OpenStack names. Where there
  # is none, the installer has reserved them with ports of these names.
  of_openstack      = var.cluster.platform == "OpenStack"
  virtual_addresses = sort(distinct(concat(var.cluster.api_vips, var.cluster.ingress_vips)))
  reserved = [for purpose in ["api", "ingress"] : "${var.machine.cluster_id}-${purpose}-port"
    if !local.of_openstack && anytrue([for network in var.provider_spec.networks : !network.noAllowedAddressPairs])
  ]

  # By how many texts there are with the word before them: the numbers of those behind it.
  numbers = [for texts in range(34) : [for number in range(texts) : number if number > 0]]
}

# What the server boots from, and its other disks.
locals {
  # A root volume without a size is none, but for its image.
  root        = try(var.provider_spec.rootVolume.diskSize, 0) > 0 ? var.provider_spec.rootVolume : null
  image_asked = try(var.provider_spec.rootVolume.sourceUUID, "") == "" ? var.provider_spec.image : var.provider_spec.rootVolume.sourceUUID
  image_by_id = can(regex("^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$", local.image_asked))
  # Without block devices the server makes its disk from the image. With some, each disk is one of them, and needs the image's id.
  boots_image = local.root == null && length(var.provider_spec.additionalBlockDevices) == 0
  image = {
    id    = local.boots_image && local.image_by_id ? local.image_asked : null
    name  = local.boots_image && !local.image_by_id ? local.image_asked : null
    asked = local.image_asked
    # A disk of the server's host that is made of the image needs it as the server's too.
    boots    = local.root == null && !local.boots_image ? [1] : []
    searches = local.boots_image || local.image_by_id ? [] : [local.image_asked]
    missing  = "no single image is called ${local.image_asked}"
  }

  root_volumes = local.root == null ? [] : [{ name = "root", size = local.root.diskSize, type = local.root.volumeType, zone = local.root.availabilityZone, boots = [1] }]
  volumes = [for volume in concat(local.root_volumes, [for device in var.provider_spec.additionalBlockDevices : {
    name  = device.name
    size  = device.sizeGiB
    type  = try(device.storage.volume.type, "")
    zone  = try(device.storage.volume.availabilityZone, "")
    boots = []
    } if device.storage.type == "Volume"]) : {
    name        = "${var.machine.name}-${volume.name}"
    description = "${volume.name} of Machine ${var.machine.namespace}/${var.machine.name}"
    size        = volume.size
    type        = volume.type == "" ? null : volume.type
    zone        = volume.zone == "" ? local.zone : volume.zone
    boots       = volume.boots
  }]
  volume_at = { for at, volume in concat(local.root_volumes, [for device in var.provider_spec.additionalBlockDevices : device if device.storage.type == "Volume"]) : volume.name => at }

  block_devices = local.boots_image ? [] : [for position, device in concat(
    [local.root == null ? { source = "image", destination = "local", size = null, images = [1], volumes = [] } : { source = "volume", destination = "volume", size = null, images = [], volumes = [0] }],
    [for device in var.provider_spec.additionalBlockDevices : device.storage.type == "Volume" ?
      { source = "volume", destination = "volume", size = null, images = [], volumes = [local.volume_at[device.name]] } :
      { source = "blank", destination = "local", size = device.sizeGiB, images = [], volumes = [] }
    ]) : merge(device, { boot = position == 0 ? 0 : -1 })
  ]
}
