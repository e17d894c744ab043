# What providerSpecs name is looked for with every plan. What is found counts when the server is made; later there may be no network of
# that name, or two, which changes nothing. In place of an id that is missing stands what to fix, which the refusal then repeats.
locals {
  networks = { for position, network in var.provider_spec.networks : position => merge(network.filter, {
    id      = network.uuid == "" ? network.filter.id : network.uuid
    missing = "no single network is what networks[${position}] names"
  }) if "${network.uuid}${join("", values(network.filter))}" != "" }
  network_ids = { for position, network in local.networks :
    position => try(one(data.openstack_networking_networks_v2.named[position].ids), null) == null ? network.missing : one(data.openstack_networking_networks_v2.named[position].ids)
  }

  subnets = merge([for position, network in var.provider_spec.networks : { for i, subnet in network.subnets : "${position}.${i}" => merge(subnet.filter, {
    id      = subnet.uuid == "" ? subnet.filter.id : subnet.uuid
    network = lookup(local.network_ids, position, "")
    tagged  = subnet.portTags
    missing = "no single subnet is what networks[${position}].subnets[${i}] names"
  }) }]...)
  subnet_ids = { for key, subnet in local.subnets : key => (length(data.openstack_networking_subnets_v2.named[key].ids) == 1 ?
    { id = data.openstack_networking_subnets_v2.named[key].ids[0], network = data.openstack_networking_subnets_v2.named[key].network_ids[0] } :
    { id = subnet.missing, network = subnet.network == "" ? subnet.missing : subnet.network }
  ) }

  security_groups = [for group in var.provider_spec.securityGroups : merge(group.filter, {
    id   = group.uuid == "" ? group.filter.id : group.uuid
    name = group.name == "" ? group.filter.name : group.name
  })]
  security_group_ids = distinct(flatten([for position, search in data.openstack_networking_secgroups_v2.named :
    length(search.ids) > 0 ? search.ids : ["no security group is what securityGroups[${position}] names"]
  ]))

  # Any Machine may use the addresses of the API and of ingress, which the installer reserves with ports of these names.
  shared_ports     = { for purpose in ["api", "ingress"] : purpose => "${var.machine.cluster_id}-${purpose}-port" if anytrue([for network in var.provider_spec.networks : !network.noAllowedAddressPairs]) }
  shared_addresses = sort(distinct(flatten([for search in data.openstack_networking_ports_v2.shared : search.addresses])))
}

data "openstack_networking_networks_v2" "named" {
  for_each = local.networks

  network_id   = each.value.id
  name         = each.value.name
  description  = each.value.description
  project_id   = each.value.projectId == "" ? each.value.tenantId : each.value.projectId
  tags         = each.value.tags
  tags_any     = each.value.tagsAny
  not_tags     = each.value.notTags
  not_tags_any = each.value.notTagsAny
}

data "openstack_networking_subnets_v2" "named" {
  for_each = local.subnets

  network_id        = each.value.network
  subnet_id         = each.value.id
  name              = each.value.name
  description       = each.value.description
  project_id        = each.value.projectId == "" ? each.value.tenantId : each.value.projectId
  tags              = each.value.tags
  tags_any          = each.value.tagsAny
  not_tags          = each.value.notTags
  not_tags_any      = each.value.notTagsAny
  ip_version        = each.value.ipVersion
  gateway_ip        = each.value.gateway_ip
  cidr              = each.value.cidr
  ipv6_address_mode = each.value.ipv6AddressMode
  ipv6_ra_mode      = each.value.ipv6RaMode
}

data "openstack_networking_secgroups_v2" "named" {
  count = length(local.security_groups)

  secgroup_id  = local.security_groups[count.index].id
  name         = local.security_groups[count.index].name
  description  = local.security_groups[count.index].description
  project_id   = local.security_groups[count.index].projectId == "" ? local.security_groups[count.index].tenantId : local.security_groups[count.index].projectId
  tags         = local.security_groups[count.index].tags
  tags_any     = local.security_groups[count.index].tagsAny
  not_tags     = local.security_groups[count.index].notTags
  not_tags_any = local.security_groups[count.index].notTagsAny
}

data "openstack_networking_ports_v2" "shared" {
  for_each = local.shared_ports

  name = each.value
}
