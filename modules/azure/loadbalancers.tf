# The load balancers that send to the virtual machine, and out for it. The provider cannot list the pools of a load balancer, so those are
# taken that Machines of the cluster are in: of its first network interface and its last one, by their names, which are of the control plane and
# of a worker. Where none is in a pool of the load balancer, the pool is called as the load balancer is.
locals {
  balancers = toset(compact([var.provider_spec.publicLoadBalancer, var.provider_spec.internalLoadBalancer]))
  # What a load balancer's pools are joined for, known before anything is read.
  pools = merge(
    { for name in local.balancers : name => { balancer = name, suffix = "", configuration = "pipConfig" } },
    { for name in local.balancers : "${name}-v6" => { balancer = name, suffix = "-v6", configuration = "pipConfig-v6" } if local.dual_stack },
  )

  own_interface = basename(azurerm_network_interface.primary.id)
  interfaces = sort([
    for one in flatten(data.azurerm_resources.interfaces[*].resources) : one.name
    if lower(one.resource_group_name) == lower(var.provider_spec.resourceGroup) && lower(one.name) != lower("${var.machine.name}-nic")
  ])
  # Without another one its own is read, once it is made: it is in no pool yet.
  examples = length(local.interfaces) == 0 ? { first = local.own_interface, last = local.own_interface } : {
    first = local.interfaces[0]
    last  = local.interfaces[length(local.interfaces) - 1]
  }
  joined = distinct(flatten([for one in data.azurerm_network_interface.example : [for configuration in one.ip_configuration : tolist(configuration.load_balancer_backend_address_pools_ids)]]))

  # Of several pools that which is called as the load balancer.
  pool_ids = { for key, pool in local.pools : key => concat(
    [for id in local.joined : id if endswith(lower(id), lower("/loadBalancers/${pool.balancer}/backendAddressPools/${pool.balancer}${pool.suffix}"))],
    [for id in local.joined : id if strcontains(lower(id), lower("/loadBalancers/${pool.balancer}/")) && endswith(id, "-v6") == (pool.suffix != "")],
    ["${local.subscription}/resourceGroups/${var.provider_spec.resourceGroup}/providers/Microsoft.Network/loadBalancers/${pool.balancer}/backendAddressPools/${pool.balancer}${pool.suffix}"],
  )[0] }
}

# A list has those that are there, so that nothing fails where one is gone.
data "azurerm_resources" "interfaces" {
  count = length(local.balancers) > 0 ? 1 : 0

  type          = "Microsoft.Network/networkInterfaces"
  required_tags = { "kubernetes.io_cluster.${var.machine.cluster_id}" = "owned" }
}

data "azurerm_network_interface" "example" {
  for_each = length(local.balancers) > 0 ? toset(["first", "last"]) : toset([])

  name                = local.examples[each.key]
  resource_group_name = var.provider_spec.resourceGroup
}

resource "azurerm_network_interface_backend_address_pool_association" "primary" {
  for_each = local.pools

  network_interface_id    = azurerm_network_interface.primary.id
  ip_configuration_name   = each.value.configuration
  backend_address_pool_id = local.pool_ids[each.key]

  depends_on = [azurerm_network_interface_security_group_association.primary]

  lifecycle {
    ignore_changes = [backend_address_pool_id]
  }
}
