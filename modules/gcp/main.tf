provider "google" {
  project = var.provider_spec.projectID
  region  = var.provider_spec.region
  zone    = var.provider_spec.zone

  # Labels are the module's; a run writes no word of the engine into them.
  add_terraform_attribution_label = false
}

resource "google_compute_instance" "this" {
  name                = var.machine.name
  project             = var.provider_spec.projectID
  zone                = var.provider_spec.zone
  machine_type        = var.provider_spec.machineType
  can_ip_forward      = var.provider_spec.canIPForward
  deletion_protection = var.provider_spec.deletionProtection
  labels              = local.labels
  tags                = length(var.provider_spec.tags) > 0 ? var.provider_spec.tags : ["${var.machine.cluster_id}-worker"]

  # Metadata that is asked for by the key of the user data takes its place.
  metadata = merge(
    var.user_data == "" ? {} : { (local.user_data_key) = local.user_data },
    { for item in var.provider_spec.gcpMetadata : item.key => item.value },
  )

  boot_disk {
    auto_delete                     = local.boot_disk.autoDelete
    kms_key_self_link               = local.boot_disk.key
    disk_encryption_service_account = local.boot_disk.key_account

    initialize_params {
      image                 = local.boot_disk.image
      size                  = local.boot_disk.sizeGb
      type                  = local.boot_disk.type
      labels                = local.boot_disk.labels
      resource_manager_tags = local.resource_manager_tags
    }
  }

  dynamic "attached_disk" {
    for_each = google_compute_disk.data

    content {
      source = attached_disk.value.self_link
    }
  }

  dynamic "network_interface" {
    for_each = local.interfaces

    content {
      network    = "projects/${coalesce(network_interface.value.projectID, var.provider_spec.projectID)}/global/networks/${network_interface.value.network}"
      subnetwork = "projects/${coalesce(network_interface.value.projectID, var.provider_spec.projectID)}/regions/${var.provider_spec.region}/subnetworks/${network_interface.value.subnetwork}"

      dynamic "access_config" {
        for_each = network_interface.value.publicIP ? [1] : []

        content {}
      }
    }
  }

  dynamic "service_account" {
    for_each = var.provider_spec.serviceAccounts

    content {
      email  = service_account.value.email
      scopes = service_account.value.scopes
    }
  }

  scheduling {
    preemptible         = var.provider_spec.preemptible || local.spot
    provisioning_model  = local.spot ? "SPOT" : null
    automatic_restart   = !(var.provider_spec.preemptible || local.spot || var.provider_spec.restartPolicy == "Never")
    on_host_maintenance = var.provider_spec.onHostMaintenance == "" ? null : upper(var.provider_spec.onHostMaintenance)
  }

  dynamic "guest_accelerator" {
    for_each = var.provider_spec.gpus

    content {
      type  = guest_accelerator.value.type
      count = max(1, guest_accelerator.value.count)
    }
  }

  # Where nothing is asked for, Google shields an instance whose image can be booted by UEFI, and no other.
  dynamic "shielded_instance_config" {
    for_each = alltrue([for policy in values(var.provider_spec.shieldedInstanceConfig) : policy == ""]) ? [] : [var.provider_spec.shieldedInstanceConfig]

    content {
      enable_secure_boot          = shielded_instance_config.value.secureBoot == "Enabled"
      enable_vtpm                 = shielded_instance_config.value.virtualizedTrustedPlatformModule != "Disabled"
      enable_integrity_monitoring = shielded_instance_config.value.integrityMonitoring != "Disabled"
    }
  }

  dynamic "confidential_instance_config" {
    for_each = contains(["", "Disabled"], var.provider_spec.confidentialCompute) ? [] : [var.provider_spec.confidentialCompute]

    content {
      enable_confidential_compute = confidential_instance_config.value == "Enabled" ? true : null
      confidential_instance_type  = lookup(local.confidential_types, confidential_instance_config.value, null)
    }
  }

  dynamic "params" {
    for_each = length(local.resource_manager_tags) == 0 ? [] : [local.resource_manager_tags]

    content {
      resource_manager_tags = params.value
    }
  }

  lifecycle {
    # An instance is what it was made as. Storage drivers attach disks to it, load balancers tag it, and others label it.
    ignore_changes = [
      machine_type, can_ip_forward, deletion_protection, labels, tags, metadata, boot_disk, attached_disk, network_interface, service_account,
      scheduling, guest_accelerator, shielded_instance_config, confidential_instance_config, params,
    ]
  }
}

# Remembers what the instance was made with, once it is made.
resource "terraform_data" "made_with" {
  input = local.fixed

  depends_on = [google_compute_instance.this]

  lifecycle {
    ignore_changes = [input]

    postcondition {
      # What earlier versions of this module compared, such as user data, is no matter any more.
      condition     = alltrue([for name, value in self.output : jsonencode(value) == jsonencode(try(local.fixed[name], value))])
      error_message = "An instance that exists stays as it is, so ${join(", ", [for name, value in self.output : name if jsonencode(value) != jsonencode(try(local.fixed[name], value))])} cannot change: take the change back, or delete the Machine so that its MachineSet makes another."
    }
  }
}

# The load balancer of the API servers sends to the instance group of the control plane in each zone, which the installer makes.
resource "google_compute_instance_group_membership" "control_plane" {
  count = local.control_plane ? 1 : 0

  project        = var.provider_spec.projectID
  zone           = var.provider_spec.zone
  instance       = google_compute_instance.this.self_link
  instance_group = "${var.machine.cluster_id}-master-${var.provider_spec.zone}"
}

locals {
  # Without any, the cluster's network for workers.
  worker_interface = { publicIP = false, network = "${var.machine.cluster_id}-network", projectID = "", subnetwork = "${var.machine.cluster_id}-worker-subnet" }
  interfaces       = length(var.provider_spec.networkInterfaces) > 0 ? var.provider_spec.networkInterfaces : tolist([local.worker_interface])

  # Windows runs what it finds under another key, without the marks that its user data has for other clouds.
  windows       = lookup(var.machine.labels, "machine.openshift.io/os-id", "") == "Windows"
  user_data_key = local.windows ? "sysprep-specialize-script-ps1" : "user-data"
  marked        = startswith(var.user_data, "<powershell>") && endswith(var.user_data, "</powershell>\n<persist>true</persist>")
  user_data = local.windows && local.marked ? (
    trimsuffix(trimprefix(var.user_data, "<powershell>"), "</powershell>\n<persist>true</persist>")
  ) : var.user_data

  spot = var.provider_spec.provisioningModel == "Spot"

  control_plane = contains([
    lookup(var.machine.labels, "machine.openshift.io/cluster-api-machine-role", ""),
    lookup(var.machine.labels, "machine.openshift.io/cluster-api-machine-type", ""),
  ], "master")

  confidential_types = {
    AMDEncryptedVirtualization             = "SEV"
    AMDEncryptedVirtualizationNestedPaging = "SEV_SNP"
    IntelTrustedDomainExtensions           = "TDX"
  }

  # Labels have neither slashes nor dots in their names here.
  own_labels = merge({
    "kubernetes-io-cluster-${var.machine.cluster_id}" = "owned"
    "machine-iac-io-machine-uid"                      = var.machine.uid
  }, var.cluster.installation == "" ? {} : { "machine-iac-io-installation" = var.cluster.installation })
  labels = merge(var.cluster.resource_labels, var.provider_spec.labels, local.own_labels)

  # Of a tag that is given twice, the last counts.
  given_tags = { for tag in var.provider_spec.resourceManagerTags : "${tag.parentID}/${tag.key}" => tag.value... }
  resource_manager_tags = merge(
    { for tag in var.cluster.resource_tags : "${tag.parent_id}/${tag.key}" => tag.value },
    { for name, values in local.given_tags : name => reverse(values)[0] },
  )

  fixed = { for name, value in var.provider_spec : name => value if !contains(["credentialsSecret", "userDataSecret"], name) }
}
