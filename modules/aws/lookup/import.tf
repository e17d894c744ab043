# Linked into a run's folder only when a create may have been lost. An instance that is gone, or about to be, is not found.
data "aws_instances" "lost" {
  instance_state_names = ["pending", "running", "stopping", "stopped"]

  filter {
    name   = "tag:machine-iac.io/machine-uid"
    values = [var.machine.uid]
  }

  lifecycle {
    postcondition {
      condition     = length(self.ids) <= 1
      error_message = "Several instances bear the Machine's UID, ${join(", ", self.ids)}: terminate all but the one that is to be the Machine's."
    }
  }
}

import {
  for_each = toset(data.aws_instances.lost.ids)
  to       = aws_instance.this
  id       = each.value
}
