# The server's ports, in the order of its interfaces: those of networks, then those of ports.
locals {
  # What descriptions say of the operator's installation; nothing where it is not known.
  installation = var.cluster.installation == "" ? "" : "Installation ${var.cluster.installation}, "

  network_ports = flatten([for position, network in var.provider_spec.networks : [
    # A network is one port, with an address in each of its subnets. Where none is named, each subnet is a port.
    for keys in contains(keys(local.networks), tostring(position)) ? [[for i in range(length(network.subnets)) : "${position}.${i}"]] : [for i in range(length(network.subnets)) : ["${position}.${i}"]] : {
      suffix          = ""
      description     = "${local.installation}Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid}"
      network_id      = contains(keys(local.networks), tostring(position)) ? local.network_ids[position] : local.subnet_ids[keys[0]].network
      fixed_ips       = [for key in keys : { subnet = local.subnet_ids[key].id, address = null }]
      tags            = concat(network.portTags, flatten([for key in keys : network.subnets[tonumber(split(".", key)[1])].portTags]))
      up              = null
      mac             = null
      security_groups = local.security_group_ids
      pairs           = network.noAllowedAddressPairs ? [] : [for address in local.shared_addresses : { address = address, mac = null }]
      vnic            = network.vnicType
      profile         = network.profile
      secure          = network.portSecurity
      trunk           = var.provider_spec.trunk
    }
  ]])

  own_ports = [for position, port in var.provider_spec.ports : {
    suffix          = port.nameSuffix
    description     = trimspace("${port.description} ${length(port.description) <= 150 ? local.installation : ""}Machine ${var.machine.uid}") # 255 characters at most
    network_id      = port.networkID != "" ? port.networkID : local.subnet_ids["port${position}.0"].network
    fixed_ips       = [for i, fixed in port.fixedIPs : { subnet = local.subnet_ids["port${position}.${i}"].id, address = fixed.ipAddress == "" ? null : fixed.ipAddress }]
    tags            = port.tags
    up              = port.adminStateUp
    mac             = port.macAddress == "" ? null : port.macAddress
    security_groups = length(port.securityGroups) > 0 ? port.securityGroups : local.security_group_ids
    pairs           = [for pair in port.allowedAddressPairs : { address = pair.ipAddress, mac = pair.macAddress == "" ? null : pair.macAddress }]
    vnic            = port.vnicType
    profile         = port.profile
    secure          = port.portSecurity
    trunk           = port.trunk == null ? var.provider_spec.trunk : port.trunk
  }]

  ports_in_order = [for position, port in concat(local.network_ports, local.own_ports) : merge(port, {
    key      = port.suffix == "" ? tostring(position) : port.suffix
    insecure = port.secure == null ? false : !port.secure
    tags     = distinct(concat(local.server_tags, port.tags, local.own_tags))
    # What OpenShift's provider knows of a profile.
    profile = merge(
      strcontains(lookup(port.profile, "capabilities", ""), "switchdev") ? { capabilities = ["switchdev"] } : {},
      lookup(port.profile, "trusted", "") == "true" ? { trusted = true } : {},
    )
  })]
  port_keys = local.ports_in_order[*].key
  ports     = { for port in local.ports_in_order : port.key => port }
}

resource "openstack_networking_port_v2" "interface" {
  for_each = local.ports

  name                  = "${var.machine.name}-${each.key}"
  description           = each.value.description
  network_id            = each.value.network_id
  admin_state_up        = each.value.up
  mac_address           = each.value.mac
  security_group_ids    = each.value.insecure ? null : each.value.security_groups
  no_security_groups    = each.value.insecure ? true : null
  port_security_enabled = each.value.secure
  tags                  = each.value.tags

  dynamic "fixed_ip" {
    for_each = each.value.fixed_ips

    content {
      subnet_id  = fixed_ip.value.subnet
      ip_address = fixed_ip.value.address
    }
  }

  dynamic "allowed_address_pairs" {
    for_each = each.value.insecure ? [] : each.value.pairs

    content {
      ip_address  = allowed_address_pairs.value.address
      mac_address = allowed_address_pairs.value.mac
    }
  }

  dynamic "binding" {
    for_each = each.value.vnic == "" && length(each.value.profile) == 0 ? [] : [each.value]

    content {
      vnic_type = binding.value.vnic == "" ? "normal" : binding.value.vnic
      profile   = length(binding.value.profile) == 0 ? null : jsonencode(binding.value.profile)
    }
  }

  lifecycle {
    # Nova binds the port, and others change what it lets through.
    ignore_changes = [
      name, description, network_id, admin_state_up, mac_address, security_group_ids, no_security_groups, port_security_enabled, tags, fixed_ip,
      allowed_address_pairs, binding, device_id, device_owner, dns_name,
    ]
  }
}

resource "openstack_networking_trunk_v2" "interface" {
  for_each = { for key, port in local.ports : key => port if port.trunk }

  name           = "${var.machine.name}-${each.key}"
  description    = "Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid}"
  port_id        = openstack_networking_port_v2.interface[each.key].id
  admin_state_up = true
  tags           = each.value.tags

  lifecycle {
    # The cluster's network may add subports for its Pods.
    ignore_changes = [name, description, admin_state_up, sub_port, tags]
  }
}

resource "openstack_networking_floatingip_associate_v2" "public" {
  count = var.provider_spec.floatingIP == "" ? 0 : 1

  floating_ip = var.provider_spec.floatingIP
  port_id     = openstack_networking_port_v2.interface[local.port_keys[0]].id

  depends_on = [openstack_compute_instance_v2.this]

  lifecycle {
    ignore_changes = [floating_ip, port_id, fixed_ip]
  }
}
