# The load balancers that send to the virtual machine, and out for it. Nothing that the provider reads lists the pools of a load balancer, or says in
# which an interface is, so that the pool is the one that is called as the load balancer.
locals {
  balancers = compact(distinct([var.provider_spec.publicLoadBalancer, var.provider_spec.internalLoadBalancer]))
  # By what is joined, with the pool of each.
  pools = merge(
    { for name in local.balancers : name => { id = "${local.own_network}/loadBalancers/${name}/backendAddressPools/${name}", configuration = "pipConfig" } },
    { for name in local.balancers : "${name}-v6" => { id = "${local.own_network}/loadBalancers/${name}/backendAddressPools/${name}-v6", configuration = "pipConfig-v6" } if local.dual_stack },
  )
}

resource "azurerm_network_interface_backend_address_pool_association" "primary" {
  for_each = local.pools

  network_interface_id    = azurerm_network_interface.primary.id
  ip_configuration_name   = each.value.configuration
  backend_address_pool_id = each.value.id

  # After the groups, so that a lookup knows by a pool that they are associated.
  depends_on = [azurerm_network_interface_security_group_association.primary, azurerm_network_interface_application_security_group_association.primary]

  lifecycle {
    ignore_changes = [backend_address_pool_id]
  }
}
