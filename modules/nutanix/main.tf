# Where it is, and who signs in, is in the environment.
provider "nutanix" {}

locals {
  units = { "" = 1, k = 1000, M = 1000000, G = 1000000000, T = 1000000000000, Ki = 1024, Mi = 1048576, Gi = 1073741824, Ti = 1099511627776 }

  # Sizes in MiB, rounded down, in the order of the disks after the memory's.
  sizes = [for size in concat([var.provider_spec.memorySize, var.provider_spec.systemDiskSize], var.provider_spec.dataDisks[*].diskSize) : floor(
    tonumber(regex("^[0-9.]+", size)) / 1048576 * local.units[regex("[A-Za-z]*$", size)]
  )]

  boot_types = { "" = null, Legacy = "LEGACY", UEFI = "UEFI", SecureBoot = "SECURE_BOOT" }

  # What the description says of the operator's installation; nothing where it is not known.
  installation = var.cluster.installation == "" ? "" : "Installation ${var.cluster.installation}, "

  # What a change of would need another virtual machine. User data is read at the first boot: other user data is for later Machines.
  fixed = { for name, value in var.provider_spec : name => value if !contains(["credentialsSecret", "userDataSecret"], name) }
}

resource "nutanix_virtual_machine" "this" {
  name         = var.machine.name
  description  = "${local.installation}Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid}"
  cluster_uuid = local.cluster_uuid

  num_sockets             = var.provider_spec.vcpuSockets
  num_vcpus_per_socket    = var.provider_spec.vcpusPerSocket
  memory_size_mib         = local.sizes[0]
  hardware_clock_timezone = "UTC"

  boot_type              = local.boot_types[var.provider_spec.bootType]
  boot_device_order_list = var.provider_spec.bootType == "Legacy" ? ["CDROM", "DISK", "NETWORK"] : null

  guest_customization_cloud_init_user_data = var.user_data == "" ? null : base64encode(local.user_data)
  guest_customization_is_overridable       = true

  project_reference = local.project_uuid == null ? null : { kind = "project", uuid = local.project_uuid }

  dynamic "categories" {
    for_each = local.categories

    content {
      name  = categories.key
      value = categories.value
    }
  }

  dynamic "categories" {
    for_each = local.cluster_category

    content {
      name  = categories.value.name
      value = categories.value.value
    }
  }

  dynamic "nic_list" {
    for_each = local.subnet_uuids

    content {
      subnet_uuid = nic_list.value
    }
  }

  disk_list {
    data_source_reference = { kind = "image", uuid = local.image_uuid }
    disk_size_mib         = local.sizes[1]
  }

  dynamic "disk_list" {
    for_each = var.provider_spec.dataDisks

    content {
      disk_size_mib         = local.sizes[disk_list.key + 2]
      data_source_reference = disk_list.value.dataSource == null ? null : { kind = "image", uuid = try(local.source_uuids[disk_list.key], "added") } # no disk is added to one that exists

      dynamic "device_properties" {
        for_each = disk_list.value.deviceProperties[*]

        content {
          device_type  = upper(device_properties.value.deviceType)
          disk_address = { adapter_type = device_properties.value.adapterType, device_index = tostring(device_properties.value.deviceIndex) }
        }
      }

      dynamic "storage_config" {
        for_each = try(disk_list.value.storageConfig.storageContainer, null)[*]

        content {
          flash_mode = disk_list.value.storageConfig.diskMode == "Flash" ? "ON" : null

          storage_container_reference {
            uuid = storage_config.value.uuid
          }
        }
      }
    }
  }

  dynamic "gpu_list" {
    for_each = local.gpus

    content {
      vendor    = gpu_list.value.vendor
      mode      = gpu_list.value.mode
      device_id = gpu_list.value.device_id
    }
  }

  lifecycle {
    # A virtual machine is what it was made as. It may be stopped, moved and resized by others, storage drivers attach volume groups to it, and
    # administrators put it into categories.
    ignore_changes = [
      name, description, cluster_uuid, num_sockets, num_vcpus_per_socket, memory_size_mib, hardware_clock_timezone, boot_type, boot_device_order_list,
      guest_customization_cloud_init_user_data, guest_customization_is_overridable, project_reference, categories, nic_list, disk_list, gpu_list,
      # An import has the provider's defaults.
      use_hot_add, enable_cpu_passthrough, is_vcpu_hard_pinned, serial_port_list,
    ]
  }
}

# Remembers what the virtual machine was made with, once it is made.
resource "terraform_data" "made_with" {
  input = local.fixed

  depends_on = [nutanix_virtual_machine.this]

  lifecycle {
    ignore_changes = [input]

    postcondition {
      # What it was made with before this module knew a field is not compared.
      condition     = alltrue([for name, value in local.fixed : jsonencode(try(self.output[name], value)) == jsonencode(value)])
      error_message = "A virtual machine that exists stays as it is, so ${join(", ", [for name, value in local.fixed : name if jsonencode(try(self.output[name], value)) != jsonencode(value)])} cannot change: take the change back, or delete the Machine so that its MachineSet makes another."
    }
  }
}
