# Linked into a run's folder only when a create may have been lost. The description has the Machine's UID.
locals {
  lost = [for one in data.nutanix_search.lost.entities : jsondecode(one) if endswith(jsondecode(one).description, " ${var.machine.uid}")]
}

data "nutanix_search" "lost" {
  kind = "virtual_machine"
  name = var.machine.name

  lifecycle {
    postcondition {
      condition     = length([for one in self.entities : one if endswith(jsondecode(one).description, " ${var.machine.uid}")]) <= 1
      error_message = "Several virtual machines bear the Machine's UID, ${join(", ", [for one in self.entities : jsondecode(one).uuid if endswith(jsondecode(one).description, " ${var.machine.uid}")])}: delete all but the one that is to be the Machine's."
    }
  }
}

import {
  for_each = toset(local.lost[*].uuid)
  to       = nutanix_virtual_machine.this
  id       = each.value
}
