# What providerSpecs name is looked for until the server is there, and recorded with it; what they name by an id is not. In place of an id that is
# missing stands what to fix, which the refusal then repeats.
locals {
  # An entry without a network is one of its subnets only.
  networks = { for position, network in var.provider_spec.networks : position => merge(network.filter, {
    id      = network.uuid == "" ? network.filter.id : network.uuid
    missing = "no single network is what networks[${position}] names"
  }) if "${network.uuid}${join("", values(network.filter))}" != "" }
  network_ids = { for position, network in local.networks : position => (
    network.id != "" ? network.id :
    var.recorded != null ? lookup(var.recorded.network_ids, position, network.missing) :
    length(data.openstack_networking_networks_v2.named[position].ids) == 1 ? data.openstack_networking_networks_v2.named[position].ids[0] : network.missing
  ) }

  subnets = merge(concat(
    [for position, network in var.provider_spec.networks : { for i, subnet in network.subnets : "${position}.${i}" => merge(subnet.filter, {
      id      = subnet.uuid == "" ? subnet.filter.id : subnet.uuid
      network = lookup(local.network_ids, position, "")
      within  = contains(keys(local.networks), tostring(position))
      missing = "no single subnet is what networks[${position}].subnets[${i}] names"
    }) }],
    [for position, port in var.provider_spec.ports : { for i, fixed in port.fixedIPs : "port${position}.${i}" => merge(local.any_subnet, {
      id      = fixed.subnetID
      network = port.networkID
      within  = port.networkID != ""
      missing = "no single subnet is what ports[${position}].fixedIPs[${i}] names"
    }) }],
  )...)
  any_subnet = {
    name            = "", description = "", tenantId = "", projectId = "", tags = "", tagsAny = "", notTags = "", notTagsAny = "", ipVersion = 0, gateway_ip = "", cidr = "",
    ipv6AddressMode = "", ipv6RaMode = ""
  }
  # One that is named by its id, in a network that is named, is nothing to look for.
  searched_subnets = { for key, subnet in local.subnets : key => subnet if subnet.id == "" || !subnet.within }
  subnet_ids = { for key, subnet in local.subnets : key => (
    !contains(keys(local.searched_subnets), key) ? { id = subnet.id, network = subnet.network } :
    var.recorded != null ? lookup(var.recorded.subnet_ids, key, { id = subnet.missing, network = subnet.missing }) :
    length(data.openstack_networking_subnets_v2.named[key].ids) == 1 ?
    { id = data.openstack_networking_subnets_v2.named[key].ids[0], network = data.openstack_networking_subnets_v2.named[key].network_ids[0] } :
    { id = subnet.missing, network = subnet.within ? subnet.network : subnet.missing }
  ) }

  security_groups = [for group in var.provider_spec.securityGroups : merge(group.filter, {
    id   = group.uuid == "" ? group.filter.id : group.uuid
    name = group.name == "" ? group.filter.name : group.name
  })]
  security_group_ids = var.recorded != null ? var.recorded.security_group_ids : distinct(flatten([for position, group in local.security_groups : (
    group.id != "" ? [group.id] :
    length(data.openstack_networking_secgroups_v2.named[position].ids) > 0 ? data.openstack_networking_secgroups_v2.named[position].ids :
    ["no security group is what securityGroups[${position}] names"]
  )]))

  # The ports of networks may use the addresses of the API and of ingress, which the Infrastructure of a cluster on OpenStack names. Where there
  # is none, the installer has reserved them with ports of these names.
  of_openstack     = var.cluster.platform == "OpenStack"
  shares_addresses = anytrue([for network in var.provider_spec.networks : !network.noAllowedAddressPairs])
  reserved_ports = { for purpose in ["api", "ingress"] : purpose => "${var.machine.cluster_id}-${purpose}-port"
    if var.recorded == null && local.shares_addresses && !local.of_openstack
  }
  shared_addresses = var.recorded != null ? var.recorded.shared_addresses : sort(distinct(concat(
    local.of_openstack ? concat(var.cluster.api_vips, var.cluster.ingress_vips) : [],
    flatten([for search in data.openstack_networking_ports_v2.shared : search.addresses]),
  )))
}

data "openstack_networking_networks_v2" "named" {
  for_each = { for position, network in local.networks : position => network if var.recorded == null && network.id == "" }

  name         = each.value.name
  description  = each.value.description
  project_id   = each.value.projectId == "" ? each.value.tenantId : each.value.projectId
  tags         = each.value.tags
  tags_any     = each.value.tagsAny
  not_tags     = each.value.notTags
  not_tags_any = each.value.notTagsAny
}

# By its id alone, or else by everything that is given.
data "openstack_networking_subnets_v2" "named" {
  for_each = { for key, subnet in local.searched_subnets : key => subnet if var.recorded == null }

  network_id        = each.value.network
  subnet_id         = each.value.id
  name              = each.value.id == "" ? each.value.name : ""
  description       = each.value.id == "" ? each.value.description : ""
  project_id        = each.value.id != "" ? "" : each.value.projectId == "" ? each.value.tenantId : each.value.projectId
  tags              = each.value.id == "" ? each.value.tags : ""
  tags_any          = each.value.id == "" ? each.value.tagsAny : ""
  not_tags          = each.value.id == "" ? each.value.notTags : ""
  not_tags_any      = each.value.id == "" ? each.value.notTagsAny : ""
  ip_version        = each.value.id == "" ? each.value.ipVersion : 0
  gateway_ip        = each.value.id == "" ? each.value.gateway_ip : ""
  cidr              = each.value.id == "" ? each.value.cidr : ""
  ipv6_address_mode = each.value.id == "" ? each.value.ipv6AddressMode : ""
  ipv6_ra_mode      = each.value.id == "" ? each.value.ipv6RaMode : ""
}

# The provider looks in the project of the credentials, unless another is named.
data "openstack_networking_secgroups_v2" "named" {
  for_each = { for position, group in local.security_groups : position => group if var.recorded == null && group.id == "" }

  name         = each.value.name
  description  = each.value.description
  project_id   = each.value.projectId == "" ? each.value.tenantId : each.value.projectId
  tags         = each.value.tags
  tags_any     = each.value.tagsAny
  not_tags     = each.value.notTags
  not_tags_any = each.value.notTagsAny
}

data "openstack_networking_ports_v2" "shared" {
  for_each = local.reserved_ports

  name = each.value
}
