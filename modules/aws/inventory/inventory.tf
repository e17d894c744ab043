# Linked into a run's folder only to list instances. Those of the control plane bear the cluster's tag as well, and no Machine's UID where the
# installer has made them.
data "aws_instances" "inventory" {
  instance_state_names = ["pending", "running", "stopping", "stopped"]

  filter {
    name   = "tag-key"
    values = ["kubernetes.io/cluster/${var.machine.cluster_id}"]
  }
}

data "aws_instance" "inventory" {
  for_each = toset(data.aws_instances.inventory.ids)

  instance_id = each.value
}

output "inventory" {
  description = "The instances of the cluster."
  value = [for instance in data.aws_instance.inventory : {
    provider_id  = "aws:///${instance.availability_zone}/${instance.id}"
    name         = lookup(instance.tags, "Name", instance.id)
    created      = instance.launch_time
    machine_uid  = lookup(instance.tags, "machine-iac.io/machine-uid", "")
    installation = lookup(instance.tags, "machine-iac.io/installation", "")
  }]
}
