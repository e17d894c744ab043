# Linked into a run's folder only when a create may have been lost. The annotation has the Machine's UID.
locals {
  # The inventory path: the name is the Machine's, and the folder one that takes no other virtual machine of this name.
  inventory_path = "/${join("/", compact([coalesce(var.provider_spec.workspace.datacenter, "*"), "vm", local.folder, var.machine.name]))}"
}

import {
  to = vsphere_virtual_machine.this
  id = local.inventory_path
}
