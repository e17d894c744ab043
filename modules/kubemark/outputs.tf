output "provider_id" {
  description = "The spec.providerID of the Node and of its Machine."
  value       = local.provider_id

  depends_on = [kubectl_manifest.this]
}

output "instance_id" {
  description = "The UID of the Node object."
  value       = kubectl_manifest.this.uid
}

output "instance_state" {
  description = "The state of the instance; a simulated Node runs as soon as it exists."
  value       = "Running"

  depends_on = [kubectl_manifest.this]
}

output "addresses" {
  description = "The addresses of the Node, each with type and address."
  value       = local.addresses

  depends_on = [kubectl_manifest.this]
}

output "instance_type" {
  description = "The instance type that the Node is labelled with."
  value       = var.provider_spec.instanceType

  depends_on = [kubectl_manifest.this]
}

output "region" {
  description = "The region that the Node is labelled with; empty when there is none."
  value       = var.provider_spec.region

  depends_on = [kubectl_manifest.this]
}

output "zone" {
  description = "The zone that the Node is labelled with; empty when there is none."
  value       = var.provider_spec.zone

  depends_on = [kubectl_manifest.this]
}
