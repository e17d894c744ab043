locals {
  # The UID in the name makes it this Machine's VM and nobody else's: the lookup needs no other proof, and a create can't take over
  # the VM of a Machine that has the same name elsewhere. KubeVirt's cloud controller accepts no dots in a name.
  name      = "${trimsuffix(substr(replace(var.machine.name, ".", "-"), 0, 50), "-")}-${substr(sha256(var.machine.uid), 0, 12)}"
  namespace = var.machine.cluster_id

  boots_with_user_data = var.provider_spec.userDataSecret != null
  user_data_secret     = "${local.name}-user-data"

  labels = merge(var.provider_spec.labels, {
    "cluster.x-k8s.io/cluster-name" = var.machine.cluster_id
    "machine-iac.io/machine-name"   = var.machine.name
    "machine-iac.io/machine-uid"    = var.machine.uid
  })
}

# The disks. Fields without a value are left out rather than written as null.
locals {
  disk = var.provider_spec.dataVolume
  root = { for field, value in {
    name = "root"
    containerDisk = var.provider_spec.containerDisk == null ? null : {
      for field, value in var.provider_spec.containerDisk : field => value if value != null
    }
    dataVolume = local.disk == null ? null : { name = "${local.name}-root" }
  } : field => value if value != null }

  cloud_init = { for field, value in {
    name                 = "user-data"
    cloudInitNoCloud     = var.provider_spec.cloudInit == "NoCloud" ? { secretRef = { name = local.user_data_secret } } : null
    cloudInitConfigDrive = var.provider_spec.cloudInit == "ConfigDrive" ? { secretRef = { name = local.user_data_secret } } : null
  } : field => value if value != null }

  volumes = [for volume in [local.root, local.boots_with_user_data ? local.cloud_init : null] : volume if volume != null]

  data_volumes = local.disk == null ? [] : [{
    metadata = { name = "${local.name}-root" }
    spec = {
      source = { for kind, source in local.disk.source : kind => source if source != null }
      storage = { for field, value in {
        resources        = { requests = { storage = local.disk.size } }
        storageClassName = local.disk.storageClassName
      } : field => value if value != null }
    }
  }]
}

# The network. Its name, "default", is the one whose addresses KubeVirt's cloud controller reports.
locals {
  binding   = coalesce(var.provider_spec.network.binding, var.provider_spec.network.multus == null ? "masquerade" : "bridge")
  interface = { name = "default", (local.binding) = {} }
  network = { for field, value in {
    name   = "default"
    pod    = var.provider_spec.network.multus == null ? {} : null
    multus = var.provider_spec.network.multus == null ? null : { networkName = var.provider_spec.network.multus }
  } : field => value if value != null }
}

locals {
  template = {
    metadata = { labels = local.labels }
    spec = { for field, value in {
      domain = {
        cpu    = { cores = var.provider_spec.cpu }
        memory = { guest = var.provider_spec.memory }
        devices = {
          disks      = [for volume in local.volumes : { name = volume.name, disk = { bus = "virtio" } }]
          interfaces = [local.interface]
        }
      }
      networks     = [local.network]
      volumes      = local.volumes
      nodeSelector = length(var.provider_spec.nodeSelector) == 0 ? null : var.provider_spec.nodeSelector
    } : field => value if value != null }
  }

  # A VM that runs goes on with the template that it was started with.
  fixed = jsonencode([local.template, local.data_volumes])
}

# Remembers what the VM was made with.
resource "terraform_data" "made_with" {
  input = local.fixed

  lifecycle {
    ignore_changes = [input]
  }
}

resource "kubectl_manifest" "this" {
  yaml_body = yamlencode({
    apiVersion = "kubevirt.io/v1"
    kind       = "VirtualMachine"
    metadata = {
      name      = local.name
      namespace = local.namespace
      labels    = local.labels
    }
    spec = merge(
      { runStrategy = var.provider_spec.runStrategy, template = local.template },
      length(local.data_volumes) == 0 ? {} : { dataVolumeTemplates = local.data_volumes },
    )
  })

  # A change of what is fixed plans a replacement, which the operator refuses, rather than an update that changes nothing that runs.
  force_new = terraform_data.made_with.output != local.fixed

  # A deleted VM is waited for: its Machine must not go before the guest has stopped and its disk is gone.
  wait = true

  # The schema would be fetched at every run, and the API server checks the VM anyhow.
  validate_schema = false
}

# Comes after the VM, which waits for it, so that it can belong to the VM and goes with it, whatever becomes of the state.
resource "kubectl_manifest" "user_data" {
  count = local.boots_with_user_data ? 1 : 0

  yaml_body = yamlencode({
    apiVersion = "v1"
    kind       = "Secret"
    metadata = {
      name      = local.user_data_secret
      namespace = local.namespace
      labels    = local.labels
      ownerReferences = [{
        apiVersion = "kubevirt.io/v1"
        kind       = "VirtualMachine"
        name       = local.name
        uid        = kubectl_manifest.this.uid
      }]
    }
    data = { userdata = base64encode(var.user_data) }
  })

  # A client-side apply would write the user data into an annotation as well.
  server_side_apply = true
  validate_schema   = false

  lifecycle {
    # It is read at the first boot; later user data is for later Machines.
    ignore_changes = [yaml_body]
  }
}
