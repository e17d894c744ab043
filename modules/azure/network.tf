# The network interface, its public address, and what it belongs to.
resource "azurerm_network_interface" "primary" {
  name                           = "${var.machine.name}-nic"
  location                       = local.location
  resource_group_name            = var.provider_spec.resourceGroup
  accelerated_networking_enabled = var.provider_spec.acceleratedNetworking
  tags                           = local.tags

  ip_configuration {
    name                          = "pipConfig"
    primary                       = true
    subnet_id                     = local.subnet_id
    private_ip_address_allocation = "Dynamic"
    public_ip_address_id          = one(azurerm_public_ip.primary[*].id)
  }

  dynamic "ip_configuration" {
    for_each = local.dual_stack ? ["pipConfig-v6"] : []

    content {
      name                          = ip_configuration.value
      subnet_id                     = local.subnet_id
      private_ip_address_allocation = "Dynamic"
      private_ip_address_version    = "IPv6"
    }
  }

  lifecycle {
    ignore_changes = [accelerated_networking_enabled, ip_configuration, tags]
  }
}

# Without zones Azure spreads it over all of them.
resource "azurerm_public_ip" "primary" {
  count = local.has_public_ip ? 1 : 0

  name                = local.public_ip
  location            = local.location
  resource_group_name = var.provider_spec.resourceGroup
  allocation_method   = "Static"
  sku                 = "Standard"
  domain_name_label   = lower(local.public_ip)
  tags                = local.tags

  lifecycle {
    ignore_changes = [name, domain_name_label, zones, tags]
  }
}

resource "azurerm_network_interface_security_group_association" "primary" {
  count = length(local.security_group_ids)

  network_interface_id      = azurerm_network_interface.primary.id
  network_security_group_id = local.security_group_ids[count.index]

  lifecycle {
    ignore_changes = [network_security_group_id]
  }
}

# To associate anything the provider reads the interface and writes the whole of it. It locks the interface for the security group by another name
# than for the rest, so that two of them at once lose one: the security group is first.
resource "azurerm_network_interface_application_security_group_association" "primary" {
  for_each = local.application_security_group_ids

  network_interface_id          = azurerm_network_interface.primary.id
  application_security_group_id = each.value

  depends_on = [azurerm_network_interface_security_group_association.primary]

  lifecycle {
    ignore_changes = [application_security_group_id]
  }
}
