provider "vsphere" {
  vsphere_server = var.provider_spec.workspace.server
}

# What is left out is the only one that there is; where there are several, vCenter's client refuses to choose.
data "vsphere_datacenter" "workspace" {
  count = var.recorded == null ? 1 : 0

  name = var.provider_spec.workspace.datacenter == "" ? null : var.provider_spec.workspace.datacenter
}

# What follows is read by name for a virtual machine that is to be made, and recorded with it: later its template may be gone, or be another of that name.
data "vsphere_resource_pool" "workspace" {
  count = var.recorded == null ? 1 : 0

  name          = var.provider_spec.workspace.resourcePool == "" ? "*/Resources" : var.provider_spec.workspace.resourcePool
  datacenter_id = data.vsphere_datacenter.workspace[0].id
}

data "vsphere_datastore" "workspace" {
  count = var.recorded == null ? 1 : 0

  name          = var.provider_spec.workspace.datastore == "" ? "*" : var.provider_spec.workspace.datastore
  datacenter_id = data.vsphere_datacenter.workspace[0].id
}

# A cluster of OpenShift has its networks from its own compute cluster, as another one of the datacenter may have some of the same names, and may have a
# tag. The provider of a registry lacks this data source; other clusters do without.
data "vsphere_workspace" "openshift" {
  count = var.recorded == null && local.openshift ? 1 : 0

  resource_pool_id = data.vsphere_resource_pool.workspace[0].id
  networks         = var.provider_spec.network.devices[*].networkName
  cluster          = var.machine.cluster_id
}

data "vsphere_network" "device" {
  count = var.recorded == null && !local.openshift ? length(var.provider_spec.network.devices) : 0

  name          = var.provider_spec.network.devices[count.index].networkName
  datacenter_id = data.vsphere_datacenter.workspace[0].id
}

data "vsphere_virtual_machine" "template" {
  count = var.recorded == null ? 1 : 0

  name          = var.provider_spec.template
  datacenter_id = data.vsphere_datacenter.workspace[0].id
}

# The named one, or the current one. Where there is none the clone is a full one.
data "vsphere_snapshot" "template" {
  count = var.recorded == null && var.provider_spec.cloneMode == "linkedClone" ? 1 : 0

  virtual_machine_uuid = data.vsphere_virtual_machine.template[0].id
  name                 = var.provider_spec.snapshot
}

locals {
  openshift = var.cluster.platform == "VSphere"

  made_of = var.recorded != null ? var.recorded : {
    resource_pool_id = data.vsphere_resource_pool.workspace[0].id
    datastore_id     = data.vsphere_datastore.workspace[0].id
    network_ids      = local.openshift ? data.vsphere_workspace.openshift[0].network_ids : data.vsphere_network.device[*].id
    tag_ids          = flatten(data.vsphere_workspace.openshift[*].tag_ids)
    snapshot         = join("", data.vsphere_snapshot.template[*].snapshot_id)
    template = [for one in data.vsphere_virtual_machine.template : {
      id        = one.id, num_cpus = one.num_cpus, num_cores_per_socket = one.num_cores_per_socket, memory = one.memory, guest_id = one.guest_id, firmware = one.firmware,
      scsi_type = one.scsi_type
      settings  = { for name in local.kept : name => one[name] }
    }][0]
    disk = [for one in data.vsphere_virtual_machine.template[0].disks : { size = one.size, thin_provisioned = one.thin_provisioned, eagerly_scrub = one.eagerly_scrub }][0]
  }
  # Settings without a field. A clone keeps the template's.
  kept = [
    "alternate_guest_name", "boot_delay", "boot_retry_delay", "boot_retry_enabled", "cpu_hot_add_enabled", "cpu_hot_remove_enabled", "cpu_limit",
    "cpu_performance_counters_enabled", "cpu_reservation", "cpu_share_count", "cpu_share_level", "efi_secure_boot_enabled", "enable_logging",
    "ept_rvi_mode", "hv_mode", "latency_sensitivity", "memory_hot_add_enabled", "memory_limit", "memory_reservation", "memory_share_count",
    "memory_share_level", "nested_hv_enabled", "run_tools_scripts_after_power_on", "run_tools_scripts_after_resume",
    "run_tools_scripts_before_guest_reboot", "run_tools_scripts_before_guest_shutdown", "run_tools_scripts_before_guest_standby", "scsi_bus_sharing",
    "swap_placement_policy", "sync_time_with_host",
  ]

  template = local.made_of.template
  settings = local.template.settings
  snapshot = local.made_of.snapshot

  # Zero means what the template has.
  asked = {
    cpus   = coalesce(var.provider_spec.numCPUs, 0)
    cores  = coalesce(var.provider_spec.numCoresPerSocket, 0)
    memory = coalesce(var.provider_spec.memoryMiB, 0)
    disk   = coalesce(var.provider_spec.diskGiB, 0)
  }
  num_cpus  = local.asked.cpus > 0 ? local.asked.cpus : local.template.num_cpus
  memory    = local.asked.memory > 0 ? local.asked.memory : local.template.memory
  disk_size = local.asked.disk > 0 && local.snapshot == "" ? local.asked.disk : local.made_of.disk.size

  # One socket has them all, unless it is said; the template's sockets count only with its processors.
  num_cores_per_socket = local.asked.cores > 0 ? local.asked.cores : local.asked.cpus > 0 ? local.asked.cpus : local.template.num_cores_per_socket

  # "Reserve all guest memory" is no attribute of the provider, so a clone of such a template reserves all of its own memory. vCenter rejects a reservation
  # above the memory or the limit.
  memory_reservation = local.settings.memory_reservation == null ? null : min(
    local.settings.memory_reservation >= local.template.memory ? local.memory : local.settings.memory_reservation,
    local.memory,
    coalesce(local.settings.memory_limit, -1) > 0 ? local.settings.memory_limit : local.memory,
  )

  # With fewer processors than the template, a clone reserves its share: vCenter rejects more than a processor has.
  cpu_reservation = local.settings.cpu_reservation == null ? null : floor(
    local.settings.cpu_reservation * min(1, local.num_cpus / max(1, local.template.num_cpus))
  )

  folder = trimsuffix(trimprefix(var.provider_spec.workspace.folder, "/${var.provider_spec.workspace.datacenter}/vm/"), "/")

  # What a change of would restart the virtual machine, do nothing, or need another one. User data is read at the first boot: other
  # user data is for later Machines.
  fixed = {
    template   = var.provider_spec.template
    clone_mode = var.provider_spec.cloneMode
    cpus       = local.asked.cpus
    cores      = local.asked.cores
    memory     = local.asked.memory
    disk       = local.asked.disk
    data_disks = var.provider_spec.dataDisks
    devices    = var.provider_spec.network.devices
    workspace  = var.provider_spec.workspace
  }
}

# Remembers in its ID which tags an adopted virtual machine came with; a virtual machine that was made here came with none.
resource "terraform_data" "adopted" {
  input = []

  lifecycle {
    ignore_changes = [input]
  }
}

locals {
  # What the annotation says of the operator's installation; nothing where it is not known.
  installation = var.cluster.installation == "" ? "" : "Installation ${var.cluster.installation}, "

  adopted_tags = terraform_data.adopted.input == null ? try(jsondecode(terraform_data.adopted.id), []) : []
}

resource "vsphere_virtual_machine" "this" {
  name       = var.machine.name
  annotation = "${local.installation}Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid}"
  folder     = local.folder

  resource_pool_id = local.made_of.resource_pool_id
  datastore_id     = local.made_of.datastore_id

  num_cpus             = local.num_cpus
  num_cores_per_socket = local.num_cores_per_socket
  memory               = local.memory
  guest_id             = local.template.guest_id
  firmware             = local.template.firmware
  scsi_type            = local.template.scsi_type
  # The provider counts 15 disks to a controller.
  scsi_controller_count = ceil((1 + length(var.provider_spec.dataDisks)) / 15)
  enable_disk_uuid      = true
  tags                  = setunion(var.provider_spec.tagIDs, local.made_of.tag_ids, local.adopted_tags)
  extra_config          = local.guest_info
  vm_group              = var.provider_spec.workspace.vmGroup

  # Without these the provider sets its own defaults on the clone. machine-api-operator keeps the template's settings.
  alternate_guest_name             = local.settings.alternate_guest_name == "" ? null : local.settings.alternate_guest_name
  boot_delay                       = local.settings.boot_delay
  boot_retry_delay                 = local.settings.boot_retry_delay
  boot_retry_enabled               = local.settings.boot_retry_enabled
  cpu_hot_add_enabled              = local.settings.cpu_hot_add_enabled
  cpu_hot_remove_enabled           = local.settings.cpu_hot_remove_enabled
  cpu_performance_counters_enabled = local.settings.cpu_performance_counters_enabled
  efi_secure_boot_enabled          = local.settings.efi_secure_boot_enabled
  enable_logging                   = local.settings.enable_logging
  ept_rvi_mode                     = local.settings.ept_rvi_mode == "" ? null : local.settings.ept_rvi_mode
  hv_mode                          = local.settings.hv_mode == "" ? null : local.settings.hv_mode
  # The provider rejects vCenter's deprecated level custom.
  latency_sensitivity    = try(contains(["low", "normal", "medium", "high"], local.settings.latency_sensitivity), false) ? local.settings.latency_sensitivity : null
  memory_hot_add_enabled = local.settings.memory_hot_add_enabled
  nested_hv_enabled      = local.settings.nested_hv_enabled
  # The provider reads unknown or mixed if the template's controllers have no common mode.
  scsi_bus_sharing      = try(contains(["noSharing", "physicalSharing", "virtualSharing"], local.settings.scsi_bus_sharing), false) ? local.settings.scsi_bus_sharing : null
  swap_placement_policy = local.settings.swap_placement_policy == "" ? null : local.settings.swap_placement_policy
  sync_time_with_host   = local.settings.sync_time_with_host

  run_tools_scripts_after_power_on        = local.settings.run_tools_scripts_after_power_on
  run_tools_scripts_after_resume          = local.settings.run_tools_scripts_after_resume
  run_tools_scripts_before_guest_reboot   = local.settings.run_tools_scripts_before_guest_reboot
  run_tools_scripts_before_guest_shutdown = local.settings.run_tools_scripts_before_guest_shutdown
  run_tools_scripts_before_guest_standby  = local.settings.run_tools_scripts_before_guest_standby

  # vCenter derives the number of shares from any level but custom.
  cpu_limit          = local.settings.cpu_limit
  cpu_reservation    = local.cpu_reservation
  cpu_share_level    = local.settings.cpu_share_level == "" ? null : local.settings.cpu_share_level
  cpu_share_count    = local.settings.cpu_share_level == "custom" ? local.settings.cpu_share_count : null
  memory_limit       = local.settings.memory_limit
  memory_reservation = local.memory_reservation
  memory_share_level = local.settings.memory_share_level == "" ? null : local.settings.memory_share_level
  memory_share_count = local.settings.memory_share_level == "custom" ? local.settings.memory_share_count : null

  # A run does not wait for the guest: the operator looks for its addresses afterwards.
  wait_for_guest_net_timeout = 0

  dynamic "network_interface" {
    for_each = var.provider_spec.network.devices

    content {
      network_id   = try(local.made_of.network_ids[network_interface.key], "added") # no device is added to one that exists
      adapter_type = "vmxnet3"
    }
  }

  disk {
    label            = "disk0"
    size             = local.disk_size
    thin_provisioned = local.made_of.disk.thin_provisioned
    eagerly_scrub    = local.made_of.disk.eagerly_scrub
  }

  dynamic "disk" {
    for_each = var.provider_spec.dataDisks

    content {
      label            = "data-${disk.value.name}"
      unit_number      = disk.key + 1
      size             = disk.value.sizeGiB
      thin_provisioned = disk.value.provisioningMode == "Thin"
      eagerly_scrub    = disk.value.provisioningMode == "EagerlyZeroed"
    }
  }

  clone {
    template_uuid = local.template.id
    # What the provider calls one has no named snapshot, and no template with several.
    linked_clone = false
    snapshot     = local.snapshot
  }

  lifecycle {
    # Templates are replaced by newer ones of their name, and the inputs of the guest count at its first boot only.
    ignore_changes = [
      clone, extra_config, num_cpus, num_cores_per_socket, memory, guest_id, firmware, scsi_type, scsi_controller_count, network_interface, disk,
      datastore_id, resource_pool_id, host_system_id,
      # Settings without a field stay as the template, or the creator of an adopted virtual machine, has set them.
      alternate_guest_name, boot_delay, boot_retry_delay, boot_retry_enabled, cpu_hot_add_enabled, cpu_hot_remove_enabled, cpu_limit,
      cpu_performance_counters_enabled, cpu_reservation, cpu_share_count, cpu_share_level, efi_secure_boot_enabled, enable_logging, ept_rvi_mode, hv_mode,
      latency_sensitivity, memory_hot_add_enabled, memory_limit, memory_reservation, memory_share_count, memory_share_level, nested_hv_enabled,
      pci_device_id, run_tools_scripts_after_power_on, run_tools_scripts_after_resume, run_tools_scripts_before_guest_reboot,
      run_tools_scripts_before_guest_shutdown, run_tools_scripts_before_guest_standby, scsi_bus_sharing, swap_placement_policy, sync_time_with_host, vapp,
      # One that was adopted keeps the notes of what made it.
      annotation,
      # An import has the provider's default, and the change would be one of a virtual machine that runs.
      wait_for_guest_net_timeout,
    ]
  }
}

# Remembers what the virtual machine was made with, once it is made.
resource "terraform_data" "made_with" {
  input = local.fixed

  depends_on = [vsphere_virtual_machine.this]

  lifecycle {
    ignore_changes = [input]

    postcondition {
      # What it was made with before this module knew a field of local.fixed is not compared.
      condition     = alltrue([for name, value in local.fixed : jsonencode(try(self.output[name], value)) == jsonencode(value)])
      error_message = "Only tagIDs can be changed on a virtual machine that exists, so ${join(", ", [for name, value in local.fixed : name if jsonencode(try(self.output[name], value)) != jsonencode(value)])} cannot: take the change back, or delete the Machine so that its MachineSet makes another."
    }
  }
}
