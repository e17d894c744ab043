# Linked into a run's folder only to read the size of a flavor that capacity.yaml lacks.
data "openstack_compute_flavor_v2" "capacity" {
  name = var.provider_spec.flavor
}

output "capacity" {
  description = "What the flavor offers. GPUs are those that Placement counts; PCI aliases may be of any device."
  value = {
    cpu        = data.openstack_compute_flavor_v2.capacity.vcpus
    memory_mib = data.openstack_compute_flavor_v2.capacity.ram
    gpu        = tonumber(lookup(data.openstack_compute_flavor_v2.capacity.extra_specs, "resources:VGPU", "0"))
  }
}
