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

  # The cluster's, wherever its network is.
  own_network                    = "${local.subscription}/resourceGroups/${var.provider_spec.resourceGroup}/providers/Microsoft.Network"
  security_group_ids             = [for name in compact([var.provider_spec.securityGroup]) : "${local.own_network}/networkSecurityGroups/${name}"]
  application_security_group_ids = { for name in var.provider_spec.applicationSecurityGroups : name => "${local.own_network}/applicationSecurityGroups/${name}" }

  public_ip     = "${var.machine.cluster_id}-${var.machine.name}"
  has_public_ip = var.provider_spec.publicIP
  dual_stack    = try(startswith(var.cluster.ip_family, "DualStack"), false)

  plan = var.provider_spec.image.type == "MarketplaceWithPlan" ? [var.provider_spec.image] : []

  # OpenShift's controller makes a set for each MachineSet in regions without zones. One is used where it is there; it is not one Machine's.
  machine_set = try(var.machine.labels["machine.openshift.io/cluster-api-machineset"], "")
  may_have_set = alltrue([
    var.provider_spec.availabilitySet == "", var.provider_spec.zone == "", local.machine_set != "", !local.spot, local.given.capacity_reservation_group == null,
  ])
  set_name  = substr(startswith(local.machine_set, var.machine.cluster_id) ? local.machine_set : "${var.machine.cluster_id}_${local.machine_set}", 0, 77)
  found_set = [for one in flatten(data.azurerm_resources.availability_sets[*].resources) : one.id if lower(one.resource_group_name) == lower(var.provider_spec.resourceGroup)]

  availability_set_id = (var.provider_spec.availabilitySet != "" ? "${local.compute}/availabilitySets/${var.provider_spec.availabilitySet}" :
  local.may_have_set ? one(local.found_set) : null)

  identity = var.provider_spec.managedIdentity
  identity_id = (local.identity == "" ? null : startswith(local.identity, "/subscriptions/") ? local.identity :
  "${local.subscription}/resourceGroups/${var.provider_spec.resourceGroup}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${local.identity}")
}

data "azurerm_resources" "availability_sets" {
  count = var.recorded == null && local.may_have_set ? 1 : 0

  type = "Microsoft.Compute/availabilitySets"
  name = "${local.set_name}-as"
}
