# What the guest reads when it boots first. Ignition is given the hostname as a file, as Nutanix says none; Windows gets its name from its
# own operator. What is no Ignition configuration is passed as it is.
locals {
  ignition = try(jsondecode(var.user_data), null)
  hostname = {
    path      = "/etc/hostname"
    overwrite = true
    mode      = 420
    contents  = { source = "data:,${var.machine.name}" }
  }

  user_data = (
    lookup(var.machine.labels, "machine.openshift.io/os-id", "") != "Windows" && can(local.ignition.ignition.version)
    ? jsonencode(merge(local.ignition, {
      storage = merge(try(local.ignition.storage, {}), { files = try(concat(local.ignition.storage.files, [local.hostname]), [local.hostname]) })
    }))
    : var.user_data
  )
}
