# Linked into a run's folder only when a create may have been lost. The description has the Machine's UID.
import {
  to = libvirt_domain.this
  id = "name=${var.machine.name}"
}
