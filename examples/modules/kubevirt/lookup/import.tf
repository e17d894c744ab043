# Linked into a run's folder only when a create may have been lost. The id is apiVersion//kind//name//namespace; both names are made
# from the Machine alone, and the VM's holds a hash of the Machine's UID, so what is found is this Machine's.
import {
  to = kubectl_manifest.this
  id = "kubevirt.io/v1//VirtualMachine//${local.name}//${local.namespace}"
}
