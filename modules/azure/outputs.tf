output "provider_id" {
  description = "The providerID as the Azure cloud provider writes it: the virtual machine's id, its resource group in small letters."
  value       = "azure://${replace(azurerm_linux_virtual_machine.this.id, "resourceGroups/${var.provider_spec.resourceGroup}/", "resourceGroups/${lower(var.provider_spec.resourceGroup)}/")}"
}

output "instance_id" {
  description = "The virtual machine's unique id."
  value       = azurerm_linux_virtual_machine.this.virtual_machine_id
}

output "instance_state" {
  description = "A virtual machine runs when it is made; the provider does not read the state of its power."
  value       = "Running"

  depends_on = [azurerm_linux_virtual_machine.this]
}

output "addresses" {
  description = "The addresses of the virtual machine's network interface, and its names."
  value = concat(
    [for address in azurerm_linux_virtual_machine.this.private_ip_addresses : { type = "InternalIP", address = address }],
    [for address in azurerm_linux_virtual_machine.this.public_ip_addresses : { type = "ExternalIP", address = address }],
    [
      { type = "Hostname", address = azurerm_linux_virtual_machine.this.name },
      { type = "InternalDNS", address = azurerm_linux_virtual_machine.this.name },
    ],
    [for suffix in compact([azurerm_network_interface.primary.internal_domain_name_suffix]) :
    { type = "InternalDNS", address = "${azurerm_linux_virtual_machine.this.name}.${suffix}" }],
  )
}

output "instance_type" {
  description = "The size of the virtual machine."
  value       = azurerm_linux_virtual_machine.this.size
}

output "region" {
  description = "The region."
  value       = azurerm_linux_virtual_machine.this.location
}

output "zone" {
  description = "The zone within the region; empty when the virtual machine is in none."
  value       = azurerm_linux_virtual_machine.this.zone == null ? "" : azurerm_linux_virtual_machine.this.zone
}
