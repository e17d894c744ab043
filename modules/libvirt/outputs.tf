output "provider_id" {
  description = "libvirt:/// and the domain's UUID, which the guest reads as its product UUID."
  value       = "libvirt:///${libvirt_domain.this.id}"
}

output "instance_id" {
  description = "The domain's UUID."
  value       = libvirt_domain.this.id
}

output "instance_state" {
  description = "Running or Shutoff."
  value       = libvirt_domain.this.running ? "Running" : "Shutoff"
}

output "addresses" {
  description = "What DHCP gave the domain, and its names."
  value = concat(
    [for address in libvirt_domain.this.network_interface[0].addresses : { type = "InternalIP", address = address }],
    [
      { type = "InternalDNS", address = libvirt_domain.this.name },
      { type = "Hostname", address = libvirt_domain.this.name },
    ],
  )
}

output "instance_type" {
  description = "Empty: libvirt has no instance types."
  value       = ""

  depends_on = [libvirt_domain.this]
}

output "region" {
  description = "Empty: libvirt has none."
  value       = ""

  depends_on = [libvirt_domain.this]
}

output "zone" {
  description = "Empty: libvirt has none."
  value       = ""

  depends_on = [libvirt_domain.this]
}
