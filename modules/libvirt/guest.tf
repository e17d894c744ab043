locals {
  # Made from the UID, under the prefix of QEMU's addresses, so that no two Machines have the same.
  mac = join(":", concat(["52", "54"], regexall("..", substr(sha256(var.machine.uid), 0, 8))))

  prefix        = var.provider_spec.networkInterfaceAddress == "" ? null : split("/", var.provider_spec.networkInterfaceAddress)[1]
  first_address = local.prefix == null ? null : cidrhost(var.provider_spec.networkInterfaceAddress, 0)

  # Ignition gets the hostname from its configuration: libvirt has no other way to set it before the first boot.
  config        = try(jsondecode(var.user_data), {})
  files         = try([for file in local.config.storage.files : file], [])
  knows_root    = startswith(try(local.config.ignition.version, ""), "2.")
  own_hostname  = anytrue([for file in local.files : try(file.path == "/etc/hostname", false)])
  hostname_file = merge({ path = "/etc/hostname", mode = 420, contents = { source = "data:,${var.machine.name}" } }, local.knows_root ? { filesystem = "root", overwrite = null } : { filesystem = null, overwrite = true })
  ignition = local.own_hostname ? var.user_data : jsonencode(merge(local.config, {
    storage = merge(try(local.config.storage, {}), {
      files = concat(local.files, [{ for key, value in local.hostname_file : key => value if value != null }])
    })
  }))
}
