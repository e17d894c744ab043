variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name and UID make the VM's name; the cluster's ID names the namespace of the VM."

  validation {
    condition     = length(var.machine.name) <= 63
    error_message = "The Machine's name becomes a label of the VM, which has at most 63 characters: give the MachineSet a shorter name."
  }

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.machine.cluster_id))
    error_message = "The VM lives in the namespace that has the cluster's name: set the label machine.openshift.io/cluster-api-cluster to lower-case letters, digits and '-', 63 at most."
  }
}

variable "provider_spec" {
  type = object({
    cpu          = optional(number, 2)
    memory       = optional(string, "4Gi")
    runStrategy  = optional(string, "Always")
    nodeSelector = optional(map(string), {})
    labels       = optional(map(string), {})

    containerDisk = optional(object({
      image           = string
      imagePullSecret = optional(string)
    }))
    dataVolume = optional(object({
      size             = string
      storageClassName = optional(string)
      source = object({
        http     = optional(object({ url = string }))
        registry = optional(object({ url = string }))
        pvc      = optional(object({ name = string, namespace = string }))
      })
    }))

    network = optional(object({
      multus  = optional(string)
      binding = optional(string)
    }), {})

    cloudInit         = optional(string, "NoCloud")
    credentialsSecret = object({ name = string })
    userDataSecret    = optional(object({ name = string }))
  })
  description = "The fields of a KubevirtMachineProviderSpec; the README explains each."

  validation {
    condition     = var.provider_spec.cpu >= 1 && floor(var.provider_spec.cpu) == var.provider_spec.cpu
    error_message = "cpu is a whole number of cores and at least 1: write it as cpu: 2."
  }

  validation {
    condition     = can(regex("^[1-9][0-9]*([KMGTPE]i?|k)?$", var.provider_spec.memory))
    error_message = "memory is a Kubernetes quantity in bytes: write it as memory: 4Gi."
  }

  validation {
    condition     = contains(["Always", "RerunOnFailure", "Manual", "Halted"], var.provider_spec.runStrategy)
    error_message = "runStrategy is one of Always, RerunOnFailure, Manual and Halted: write it as runStrategy: Always."
  }

  validation {
    condition     = (var.provider_spec.containerDisk == null) != (var.provider_spec.dataVolume == null)
    error_message = "The VM boots from one disk: write either containerDisk or dataVolume."
  }

  validation {
    condition     = var.provider_spec.containerDisk == null ? true : can(regex("^[^[:space:]]+$", var.provider_spec.containerDisk.image))
    error_message = "containerDisk.image is the name of a container image: write it as image: quay.io/containerdisks/fedora:latest."
  }

  validation {
    condition     = var.provider_spec.dataVolume == null ? true : can(regex("^[1-9][0-9]*([KMGTPE]i?|k)?$", var.provider_spec.dataVolume.size))
    error_message = "dataVolume.size is a Kubernetes quantity in bytes: write it as size: 30Gi."
  }

  validation {
    condition     = var.provider_spec.dataVolume == null ? true : length([for source in values(var.provider_spec.dataVolume.source) : true if source != null]) == 1
    error_message = "A disk has one source: write exactly one of dataVolume.source.http, dataVolume.source.registry and dataVolume.source.pvc."
  }

  validation {
    condition     = var.provider_spec.network.binding == null ? true : contains(["masquerade", "bridge"], var.provider_spec.network.binding)
    error_message = "network.binding is masquerade or bridge: write it as binding: bridge, or leave it out."
  }

  validation {
    condition     = var.provider_spec.network.multus == null || var.provider_spec.network.binding != "masquerade"
    error_message = "masquerade works on the Pod network only: with network.multus write binding: bridge, or leave it out."
  }

  validation {
    condition     = contains(["NoCloud", "ConfigDrive"], var.provider_spec.cloudInit)
    error_message = "cloudInit is the data source that the image reads, NoCloud or ConfigDrive: write it as cloudInit: NoCloud."
  }
}

variable "user_data" {
  type        = string
  description = "What cloud-init or Ignition reads at the first boot."
  sensitive   = true
}
