# Linked into a run's folder only when a create may have been lost. An instance that is gone, or about to be, is not found.
data "aws_instances" "lost" {
  instance_state_names = ["pending", "running", "stopping", "stopped"]

  filter {
    name   = "tag:machine-iac.io/machine-uid"
    values = [var.machine.uid]
  }
}

import {
  for_each = toset(data.aws_instances.lost.ids)
  to       = aws_instance.this
  id       = each.value
}
