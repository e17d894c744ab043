# Linked into a run's folder only when a create may have been lost. The id is apiVersion//kind//name.
import {
  to = kubectl_manifest.this
  id = "v1//Node//${var.machine.name}"
}
