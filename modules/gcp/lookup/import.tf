# Linked into a run's folder only when a create may have been lost. A name is one instance's in a zone; its label has the Machine's UID.
locals {
  instance = "projects/${var.provider_spec.projectID}/zones/${var.provider_spec.zone}/instances/${var.machine.name}"
}

import {
  to = google_compute_instance.this
  id = local.instance
}
