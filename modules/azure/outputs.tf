output "provider_id" {
  description = "The providerID as the Azure cloud provider writes it: the virtual machine's id, its subscription and resource group in small letters."
  value       = join("/", concat(["azure:/"], [for part, text in split("/", local.id) : contains([2, 4], part) ? lower(text) : text]))
}

output "instance_id" {
  description = "The virtual machine's unique id, or its id of Resource Manager where the provider reads no other."
  value       = one(concat(azurerm_linux_virtual_machine.this[*].virtual_machine_id, azurerm_windows_virtual_machine.this[*].virtual_machine_id, azurerm_virtual_machine.this[*].id))
}

output "vm_id" {
  description = "The virtual machine's id of Resource Manager, which OpenShift's provider has in vmId."
  value       = local.id
}

output "instance_state" {
  description = "The state of its power, as the Machine API spells it: Running, Stopped, Deallocated and such."
  value       = data.azurerm_virtual_machine.this.power_state == "" ? "Unknown" : title(data.azurerm_virtual_machine.this.power_state)
}

output "addresses" {
  description = "The addresses of the virtual machine's network interface, and its names."
  value = concat(
    [for address in azurerm_network_interface.primary.private_ip_addresses : { type = "InternalIP", address = address }],
    [for address in azurerm_public_ip.primary[*].ip_address : { type = "ExternalIP", address = address }],
    [for name in compact(azurerm_public_ip.primary[*].fqdn) : { type = "ExternalDNS", address = name }],
    [
      { type = "Hostname", address = local.name },
      { type = "InternalDNS", address = local.name },
    ],
    [for suffix in compact([azurerm_network_interface.primary.internal_domain_name_suffix]) :
    { type = "InternalDNS", address = "${local.name}.${suffix}" }],
  )

  depends_on = [azurerm_linux_virtual_machine.this, azurerm_windows_virtual_machine.this, azurerm_virtual_machine.this]
}

output "instance_type" {
  description = "The size of the virtual machine."
  value       = one(concat(azurerm_linux_virtual_machine.this[*].size, azurerm_windows_virtual_machine.this[*].size, azurerm_virtual_machine.this[*].vm_size))
}

output "region" {
  description = "The region."
  value       = one(concat(azurerm_linux_virtual_machine.this[*].location, azurerm_windows_virtual_machine.this[*].location, azurerm_virtual_machine.this[*].location))
}

output "zone" {
  description = "The zone within the region; empty when the virtual machine is in none."
  value       = join(",", compact(concat(azurerm_linux_virtual_machine.this[*].zone, azurerm_windows_virtual_machine.this[*].zone, flatten(azurerm_virtual_machine.this[*].zones))))
}

output "interruptible" {
  description = "Whether it is a Spot machine, which Azure may delete at any time."
  value       = local.spot

  depends_on = [azurerm_linux_virtual_machine.this, azurerm_windows_virtual_machine.this]
}

output "outlives" {
  description = "The disks that stay when the Machine is deleted."
  value       = [for suffix in keys(local.kept_disks) : "disk ${local.name}_${suffix} (deletionPolicy: Detach)"]

  depends_on = [azurerm_virtual_machine.this]
}

output "recorded" {
  description = "Where the virtual machine was made, which its resource group said."
  value       = { location = local.location }

  depends_on = [azurerm_linux_virtual_machine.this, azurerm_windows_virtual_machine.this, azurerm_virtual_machine.this]
}

locals {
  name = one(concat(azurerm_linux_virtual_machine.this[*].name, azurerm_windows_virtual_machine.this[*].name, azurerm_virtual_machine.this[*].name))
}
