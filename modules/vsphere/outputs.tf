output "provider_id" {
  description = "The providerID as the vSphere cloud provider writes it: the BIOS UUID."
  value       = "vsphere://${vsphere_virtual_machine.this.uuid}"
}

output "instance_id" {
  description = "The BIOS UUID of the virtual machine."
  value       = vsphere_virtual_machine.this.uuid
}

output "instance_state" {
  description = "The power state: poweredOn, poweredOff or suspended."
  value       = vsphere_virtual_machine.this.power_state
}

output "addresses" {
  description = "What the guest reports of its addresses, and its names."
  value = concat(
    [for address in vsphere_virtual_machine.this.guest_ip_addresses : { type = "InternalIP", address = address }],
    [
      { type = "InternalDNS", address = vsphere_virtual_machine.this.name },
      { type = "Hostname", address = vsphere_virtual_machine.this.name },
    ],
  )
}

output "instance_type" {
  description = "Empty: vSphere has no instance types."
  value       = ""

  depends_on = [vsphere_virtual_machine.this]
}

output "region" {
  description = "The region of the cluster's failure domain that the workspace is of; empty where there is none."
  value       = local.failure_domain == null ? "" : local.failure_domain.region

  depends_on = [vsphere_virtual_machine.this]
}

output "zone" {
  description = "The zone of that failure domain."
  value       = local.failure_domain == null ? "" : local.failure_domain.zone

  depends_on = [vsphere_virtual_machine.this]
}

output "recorded" {
  description = "What was read by name when the virtual machine was made."
  value       = local.made_of

  depends_on = [vsphere_virtual_machine.this]
}
