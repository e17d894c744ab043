provider "libvirt" {
  uri = var.provider_spec.uri
}

locals {
  # Names of volumes hold the UID, since the provider takes a volume of the name that is there already for the one that it was to make.
  volume = "${var.machine.name}-${var.machine.uid}"

  # What the description says of the operator's installation; nothing where it is not known.
  installation = var.cluster.installation == "" ? "" : "of the installation ${var.cluster.installation} "

  units = {
    "" = 1, k = 1000, M = pow(1000, 2), G = pow(1000, 3), T = pow(1000, 4), P = pow(1000, 5)
    Ki = 1024, Mi = pow(1024, 2), Gi = pow(1024, 3), Ti = pow(1024, 4), Pi = pow(1024, 5)
  }
  size = var.provider_spec.volume.volumeSize == null ? null : ceil(
    tonumber(regex("^[0-9.]+", var.provider_spec.volume.volumeSize)) * local.units[regex("[a-zA-Z]*$", var.provider_spec.volume.volumeSize)]
  )

  base_is_path = startswith(var.provider_spec.volume.baseVolumeID, "/")

  # What a change of would need another domain, or do nothing before the first boot of another one.
  fixed = {
    memory         = var.provider_spec.domainMemory
    processors     = var.provider_spec.domainVcpu
    ignition       = var.provider_spec.ignKey
    volume         = var.provider_spec.volume
    network        = var.provider_spec.networkInterfaceName
    network_uuid   = var.provider_spec.networkUUID
    network_prefix = var.provider_spec.networkInterfaceAddress
    uri            = var.provider_spec.uri
  }
}

resource "libvirt_volume" "root" {
  name             = local.volume
  pool             = var.provider_spec.volume.poolName
  format           = "qcow2"
  size             = local.size
  base_volume_id   = local.base_is_path ? var.provider_spec.volume.baseVolumeID : null
  base_volume_name = local.base_is_path ? null : var.provider_spec.volume.baseVolumeID

  lifecycle {
    ignore_changes = [name, pool, source, size, format, base_volume_id, base_volume_name]
  }
}

resource "libvirt_ignition" "user_data" {
  count = var.provider_spec.ignKey == "" ? 1 : 0

  name    = "${local.volume}.ign"
  pool    = var.provider_spec.volume.poolName
  content = local.ignition

  lifecycle {
    ignore_changes = [name, pool, content] # it is read at the first boot
  }
}

resource "libvirt_domain" "this" {
  name        = var.machine.name
  description = "Machine ${var.machine.namespace}/${var.machine.name} ${var.machine.uid} ${local.installation}of the cluster ${var.machine.cluster_id}"
  memory      = var.provider_spec.domainMemory
  vcpu        = var.provider_spec.domainVcpu
  autostart   = var.provider_spec.autostart
  running     = true

  # What came before the ';' is the path of the configuration.
  coreos_ignition = var.provider_spec.ignKey == "" ? libvirt_ignition.user_data[0].id : "${var.provider_spec.ignKey};"

  # The host's own processor where KVM runs the domain, and everything that QEMU can emulate where it does not.
  cpu {
    mode = "maximum"
  }

  disk {
    volume_id = libvirt_volume.root.id
  }

  network_interface {
    network_name   = var.provider_spec.networkInterfaceName == "" ? null : var.provider_spec.networkInterfaceName
    network_id     = var.provider_spec.networkUUID == "" ? null : var.provider_spec.networkUUID
    hostname       = var.machine.name
    mac            = local.mac
    wait_for_lease = local.prefix != null
  }

  console {
    type        = "pty"
    target_type = "serial"
    target_port = "0"
  }

  graphics {
    type           = "vnc"
    listen_type    = "address"
    listen_address = "127.0.0.1"
  }

  lifecycle {
    # An import does not have all of them, and terraform_data.made_with detects their changes.
    ignore_changes = [
      memory, vcpu, type, coreos_ignition, fw_cfg_name, qemu_agent, cpu, disk, network_interface, console, graphics, video,
      machine, arch, emulator, firmware, nvram,
      # One that was adopted keeps the description of what made it. Timeouts are the provider's own, which an import has as empty ones.
      description, timeouts,
    ]

    postcondition {
      condition = (
        local.prefix == null || length(self.network_interface[0].addresses) == 0 ? true :
        anytrue([for address in self.network_interface[0].addresses : try(cidrhost("${address}/${local.prefix}", 0) == local.first_address, false)])
      )
      error_message = "DHCP gave the domain no address of networkInterfaceAddress: name the network in networkInterfaceName whose addresses these are."
    }
  }
}

# Remembers what the domain was made with, once it is made.
resource "terraform_data" "made_with" {
  input = local.fixed

  depends_on = [libvirt_domain.this]

  lifecycle {
    ignore_changes = [input]

    postcondition {
      # What earlier versions of this module compared, such as user data, is no matter any more.
      condition     = alltrue([for name, value in self.output : jsonencode(value) == jsonencode(try(local.fixed[name], value))])
      error_message = "Only autostart can be changed on a domain that exists, so ${join(", ", [for name, value in self.output : name if jsonencode(value) != jsonencode(try(local.fixed[name], value))])} cannot: take the change back, or delete the Machine so that its MachineSet makes another."
    }
  }
}
