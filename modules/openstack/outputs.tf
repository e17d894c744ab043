output "provider_id" {
  description = "The providerID as the OpenStack cloud provider writes it: the server's id."
  value       = "openstack:///${openstack_compute_instance_v2.this.id}"
}

output "instance_id" {
  description = "The server's id."
  value       = openstack_compute_instance_v2.this.id
}

output "instance_state" {
  description = "Nova's word for the server's state, for example ACTIVE or SHUTOFF."
  value       = upper(openstack_compute_instance_v2.this.power_state)
}

output "addresses" {
  description = "The addresses of the server's ports, each port's of IPv4 first, and its name."
  value = concat(
    flatten([for key in local.port_keys : [
      for six in [false, true] : [for address in openstack_networking_port_v2.interface[key].all_fixed_ips : { type = "InternalIP", address = address } if strcontains(address, ":") == six]
    ]]),
    [for address in openstack_networking_floatingip_associate_v2.public[*].floating_ip : { type = "ExternalIP", address = address }],
    [
      { type = "Hostname", address = openstack_compute_instance_v2.this.name },
      { type = "InternalDNS", address = openstack_compute_instance_v2.this.name },
    ],
  )
}

output "instance_type" {
  description = "The name of the server's flavor."
  value       = openstack_compute_instance_v2.this.flavor_name
}

output "region" {
  description = "The region, as the clouds.yaml names it."
  value       = openstack_compute_instance_v2.this.region
}

output "zone" {
  description = "The server's availability zone."
  value       = openstack_compute_instance_v2.this.availability_zone
}

output "recorded" {
  description = "What was found by name when the server was made."
  value = {
    network_ids        = local.network_ids
    subnet_ids         = local.subnet_ids
    security_group_ids = local.security_group_ids
    shared_addresses   = local.shared_addresses
    image_id           = local.boots_image ? null : local.image_id
  }

  depends_on = [openstack_compute_instance_v2.this]
}
