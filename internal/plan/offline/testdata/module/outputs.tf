output "instance_id" {
  value = vsphere_virtual_machine.this.moid
}

output "name" {
  value = vsphere_virtual_machine.this.name
}

output "uid_hash" {
  value = sha256(var.machine.uid)
}

output "cluster_id" {
  value = var.machine.cluster_id
}

output "annotation" {
  value = vsphere_virtual_machine.this.annotation
}
