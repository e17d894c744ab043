# The ids of what is there already, made from names.
locals {
  subscription  = "/subscriptions/${data.azurerm_client_config.current.subscription_id}"
  compute       = "${local.subscription}/resourceGroups/${var.provider_spec.resourceGroup}/providers/Microsoft.Compute"
  network       = "${local.subscription}/resourceGroups/${local.network_group}/providers/Microsoft.Network"
  network_group = var.provider_spec.networkResourceGroup == "" ? var.provider_spec.resourceGroup : var.provider_spec.networkResourceGroup

  # The installer writes ids of images without the subscription.
  image    = var.provider_spec.image.resourceID
  image_id = local.image == "" ? null : startswith(local.image, "/subscriptions/") ? local.image : "${local.subscription}${local.image}"

  vnet      = var.provider_spec.vnet == "" ? "${var.machine.cluster_id}-vnet" : var.provider_spec.vnet
  subnet    = var.provider_spec.subnet == "" ? "${var.machine.cluster_id}-worker-subnet" : var.provider_spec.subnet
  subnet_id = "${local.network}/virtualNetworks/${local.vnet}/subnets/${local.subnet}"

  security_group_ids             = [for name in compact([var.provider_spec.securityGroup]) : "${local.network}/networkSecurityGroups/${name}"]
  application_security_group_ids = { for name in var.provider_spec.applicationSecurityGroups : name => "${local.network}/applicationSecurityGroups/${name}" }

  # The pool of a load balancer is called as the load balancer is.
  load_balancers = { for name in compact([var.provider_spec.publicLoadBalancer, var.provider_spec.internalLoadBalancer]) :
    name => "${local.subscription}/resourceGroups/${var.provider_spec.resourceGroup}/providers/Microsoft.Network/loadBalancers/${name}/backendAddressPools/${name}"
  }

  availability_set_id = var.provider_spec.availabilitySet == "" ? null : "${local.compute}/availabilitySets/${var.provider_spec.availabilitySet}"

  identity = var.provider_spec.managedIdentity
  identity_id = (local.identity == "" ? null : startswith(local.identity, "/subscriptions/") ? local.identity :
  "${local.subscription}/resourceGroups/${var.provider_spec.resourceGroup}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${local.identity}")
}
