output "provider_id" {
  description = "The provider ID."
  value       = "example://${vsphere_virtual_machine.this.uuid}"
}

output "instance_id" {
  description = "The instance's own name."
  value       = vsphere_virtual_machine.this.moid
}

output "instance_state" {
  description = "The instance's state."
  value       = "poweredOn"

  depends_on = [vsphere_virtual_machine.this]
}

output "addresses" {
  description = "The instance's addresses."
  value = [
    { type = "InternalIP", address = vsphere_virtual_machine.this.default_ip_address },
    { type = "InternalDNS", address = vsphere_virtual_machine.this.name },
  ]
}

output "instance_type" {
  description = "The instance type."
  value       = var.provider_spec.instanceType

  depends_on = [vsphere_virtual_machine.this]
}

output "region" {
  description = "The region, which there is none of."
  value       = ""

  depends_on = [vsphere_virtual_machine.this]
}

output "zone" {
  description = "The zone."
  value       = var.provider_spec.zone

  depends_on = [vsphere_virtual_machine.this]
}
