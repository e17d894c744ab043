output "provider_id" {
  description = "What KubeVirt's cloud controller writes into the Node's spec.providerID: kubevirt:// and the VM's name."
  value       = "kubevirt://${local.name}"

  depends_on = [kubectl_manifest.this]
}

output "instance_id" {
  description = "The UID of the VirtualMachine."
  value       = kubectl_manifest.this.uid
}

output "instance_state" {
  description = "The run strategy that KubeVirt keeps the VM to. The provider cannot read the VM's status."
  value       = var.provider_spec.runStrategy

  depends_on = [kubectl_manifest.this]
}

output "addresses" {
  description = "The VM's name, which is the guest's hostname and the Node's name. IP addresses are reported on the Node."
  value = [
    { type = "Hostname", address = local.name },
    { type = "InternalDNS", address = local.name },
  ]

  depends_on = [kubectl_manifest.this]
}

output "instance_type" {
  description = "The size of the VM, for example 2cpu-4Gi."
  value       = "${var.provider_spec.cpu}cpu-${var.provider_spec.memory}"

  depends_on = [kubectl_manifest.this]
}

output "region" {
  description = "The region that the nodeSelector asks for; empty when it asks for none."
  value       = lookup(var.provider_spec.nodeSelector, "topology.kubernetes.io/region", "")

  depends_on = [kubectl_manifest.this]
}

output "zone" {
  description = "The zone that the nodeSelector asks for; empty when it asks for none."
  value       = lookup(var.provider_spec.nodeSelector, "topology.kubernetes.io/zone", "")

  depends_on = [kubectl_manifest.this]
}
