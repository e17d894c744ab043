provider "openstack" {
  cloud = var.provider_spec.cloudName
}

resource "openstack_compute_instance_v2" "this" {
  name              = var.machine.name
  flavor_name       = var.provider_spec.flavor
  image_id          = local.boots_image ? local.image.id : local.root_volume == null ? local.image_id : null # also of a disk of its host that is made of the image
  image_name        = local.boots_image && local.image.id == null ? local.image.name : null
  key_pair          = var.provider_spec.keyName == "" ? null : var.provider_spec.keyName
  availability_zone = local.zone
  config_drive      = var.provider_spec.configDrive
  power_state       = "active"
  user_data         = var.user_data == "" ? null : var.user_data
  tags              = local.server_tags
  metadata          = merge(var.provider_spec.serverMetadata, local.own_metadata)

  dynamic "network" {
    for_each = local.port_keys

    content {
      port = openstack_networking_port_v2.interface[network.value].id
    }
  }

  dynamic "block_device" {
    for_each = local.block_devices

    content {
      source_type           = block_device.value.source
      destination_type      = block_device.value.destination
      uuid                  = block_device.value.id
      volume_size           = block_device.value.size
      boot_index            = block_device.key == 0 ? 0 : -1
      delete_on_termination = true
    }
  }

  dynamic "scheduler_hints" {
    for_each = local.server_group_id[*]

    content {
      group = scheduler_hints.value
    }
  }

  # A trunk is made of a port that no server has yet.
  depends_on = [openstack_networking_trunk_v2.interface]

  lifecycle {
    precondition {
      condition     = length(local.named_groups) == 0 || contains(local.named_groups, var.provider_spec.serverGroupName)
      error_message = "Name of a ${var.provider_spec.serverGroupID} server group does not match defined name ${var.provider_spec.serverGroupName}: correct serverGroupName, or leave it out."
    }
    # A server is what it was made as. It may be stopped, moved and resized by others, storage drivers attach volumes to it, and an import
    # knows neither its block devices nor its user data.
    ignore_changes = [
      flavor_id, flavor_name, image_id, image_name, key_pair, availability_zone, config_drive, user_data, tags, metadata, network, block_device,
      scheduler_hints, power_state, security_groups, name,
    ]
  }
}

# A server group is its Machines' together: it is made where there is none, and stays.
resource "openstack_compute_servergroup_shared_v2" "shared" {
  count = var.provider_spec.serverGroupName == "" || var.provider_spec.serverGroupID != "" ? 0 : 1

  name   = var.provider_spec.serverGroupName
  policy = "soft-anti-affinity"

  lifecycle {
    ignore_changes = [name, policy]
  }
}

# Where both are given, the group of the id must have the name.
data "openstack_compute_servergroups_v2" "named" {
  count = var.recorded == null && var.provider_spec.serverGroupName != "" && var.provider_spec.serverGroupID != "" ? 1 : 0

  servergroup_id = var.provider_spec.serverGroupID
}

# Remembers what the server was made with, once it is made.
resource "terraform_data" "made_with" {
  input = local.fixed

  depends_on = [openstack_compute_instance_v2.this]

  lifecycle {
    ignore_changes = [input]

    postcondition {
      # What earlier versions of this module compared, such as user data, is no matter any more.
      condition     = alltrue([for name, value in self.output : jsonencode(value) == jsonencode(try(local.fixed[name], value))])
      error_message = "A server that exists stays as it is, so ${join(", ", [for name, value in self.output : name if jsonencode(value) != jsonencode(try(local.fixed[name], value))])} cannot change: take the change back, or delete the Machine so that its MachineSet makes another."
    }
    postcondition {
      condition     = can(self.output.layout) || alltrue([for position in keys(local.networks) : length(var.provider_spec.networks[position].subnets) <= 1])
      error_message = "This server was made with a port for each subnet of a network; now they are one port. It stays as it is: delete the Machine so that its MachineSet makes another."
    }
  }
}

locals {
  zone            = var.provider_spec.availabilityZone == "" ? null : var.provider_spec.availabilityZone
  server_group_id = var.provider_spec.serverGroupID == "" ? one(openstack_compute_servergroup_shared_v2.shared[*].id) : var.provider_spec.serverGroupID
  named_groups    = flatten(data.openstack_compute_servergroups_v2.named[*].names)

  # OpenShift's installer finds what belongs to a cluster by this one when it destroys it. Neutron has tags, the others metadata.
  cluster = { openshiftClusterID = var.machine.cluster_id }
  own_metadata = merge(local.cluster, {
    "machine-iac.io_machine-uid" = var.machine.uid
  }, var.cluster.installation == "" ? {} : { "machine-iac.io_installation" = var.cluster.installation })
  own_tags = ["openshiftClusterID=${var.machine.cluster_id}", "machine-uid=${var.machine.uid}"]
  # OpenShift's provider adds these two. Nova takes 50 tags of 60 characters.
  default_tags = [for tag in ["cluster-api-provider-openstack", "${var.machine.namespace}-${var.machine.cluster_id}"] : tag if length(tag) <= 60]
  all_tags     = distinct(concat(var.provider_spec.tags, local.default_tags))
  server_tags  = slice(local.all_tags, 0, min(50, length(local.all_tags)))

  fixed = merge(
    { for name, value in var.provider_spec : name => value if !contains(["cloudsSecret", "cloudName", "userDataSecret"], name) },
    { layout = "a port for each network" },
  )
}
