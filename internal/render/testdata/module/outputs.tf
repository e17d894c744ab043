output "provider_id" {
  description = "One of the seven."
  value       = example_instance.this.provider_id
}

output "instance_id" {
  description = "One of the seven."
  value       = example_instance.this.instance_id
}

output "instance_state" {
  description = "One of the seven."
  value       = example_instance.this.instance_state
}

output "addresses" {
  description = "One of the seven."
  value       = example_instance.this.addresses
}

output "instance_type" {
  description = "One of the seven."
  value       = example_instance.this.instance_type
}

output "region" {
  description = "One of the seven."
  value       = example_instance.this.region
}

output "zone" {
  description = "One of the seven."
  value       = example_instance.this.zone
}
