# The network interface, its public address, and what it belongs to.
resource "azurerm_network_interface" "primary" {
  name                           = "${var.machine.name}-nic"
  location                       = var.provider_spec.location
  resource_group_name            = var.provider_spec.resourceGroup
  accelerated_networking_enabled = var.provider_spec.acceleratedNetworking
  tags                           = local.tags

  ip_configuration {
    name                          = "pipConfig"
    subnet_id                     = local.subnet_id
    private_ip_address_allocation = "Dynamic"
    public_ip_address_id          = one(azurerm_public_ip.primary[*].id)
  }

  lifecycle {
    ignore_changes = [accelerated_networking_enabled, ip_configuration, tags]
  }
}

resource "azurerm_public_ip" "primary" {
  count = var.provider_spec.publicIP ? 1 : 0

  name                = "${var.machine.name}-public"
  location            = var.provider_spec.location
  resource_group_name = var.provider_spec.resourceGroup
  allocation_method   = "Static"
  sku                 = "Standard"
  zones               = local.given.zone[*]
  tags                = local.tags

  lifecycle {
    ignore_changes = [zones, tags]
  }
}

resource "azurerm_network_interface_security_group_association" "primary" {
  count = length(local.security_group_ids)

  network_interface_id      = azurerm_network_interface.primary.id
  network_security_group_id = local.security_group_ids[count.index]
}

resource "azurerm_network_interface_application_security_group_association" "primary" {
  for_each = local.application_security_group_ids

  network_interface_id          = azurerm_network_interface.primary.id
  application_security_group_id = each.value
}

resource "azurerm_network_interface_backend_address_pool_association" "primary" {
  for_each = local.load_balancers

  network_interface_id    = azurerm_network_interface.primary.id
  ip_configuration_name   = "pipConfig"
  backend_address_pool_id = each.value
}
