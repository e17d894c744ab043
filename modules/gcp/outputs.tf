output "provider_id" {
  description = "The providerID as the GCP cloud provider writes it: project, zone and name."
  value       = "gce://${var.provider_spec.projectID}/${google_compute_instance.this.zone}/${google_compute_instance.this.name}"

  depends_on = [google_compute_instance.this]
}

output "instance_id" {
  description = "The instance's name, by which the Machine API knows it."
  value       = google_compute_instance.this.name

  depends_on = [google_compute_instance.this]
}

output "instance_state" {
  description = "Google's word for the instance's state, for example RUNNING or TERMINATED."
  value       = google_compute_instance.this.current_status
}

output "addresses" {
  description = "The addresses of the instance's network interfaces, and its names."
  value = concat(
    [for address in compact(flatten([for interface in google_compute_instance.this.network_interface : [interface.network_ip, interface.ipv6_address]])) :
    { type = "InternalIP", address = address }],
    [for address in compact(flatten([for interface in google_compute_instance.this.network_interface : [interface.access_config[*].nat_ip, interface.ipv6_access_config[*].external_ipv6]])) :
    { type = "ExternalIP", address = address }],
    [for name in [
      "${google_compute_instance.this.name}.${google_compute_instance.this.zone}.c.${var.provider_spec.projectID}.internal",
      "${google_compute_instance.this.name}.c.${var.provider_spec.projectID}.internal",
      google_compute_instance.this.name,
    ] : { type = "InternalDNS", address = name }],
    [{ type = "Hostname", address = google_compute_instance.this.name }],
  )
}

output "instance_type" {
  description = "The machine type."
  value       = google_compute_instance.this.machine_type
}

output "interruptible" {
  description = "Whether Google may end the instance at any time: it is preemptible, or a Spot instance."
  value       = google_compute_instance.this.scheduling[0].preemptible || google_compute_instance.this.scheduling[0].provisioning_model == "SPOT"
}

output "outlives" {
  description = "The disks that stay when the Machine is deleted."
  value = concat(
    [for disk in google_compute_instance.this.boot_disk : "disk ${basename(disk.source)} (boot disk, autoDelete: false)" if !disk.auto_delete],
    [for disk in google_compute_disk.data : "disk ${disk.name} (autoDelete: false)" if disk.deletion_policy == "ABANDON"],
  )

  depends_on = [google_compute_instance.this]
}

output "region" {
  description = "The region."
  value       = var.provider_spec.region

  depends_on = [google_compute_instance.this]
}

output "zone" {
  description = "The zone."
  value       = google_compute_instance.this.zone
}
