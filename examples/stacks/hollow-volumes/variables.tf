variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name becomes the Node's name; its UID makes the Node's provider ID and address."

  validation {
    condition     = length(var.machine.name) <= 63
    error_message = "The Machine's name becomes the label kubernetes.io/hostname, which has at most 63 characters: give the MachineSet a shorter name."
  }
}

variable "provider_spec" {
  type = object({
    cpu          = optional(number, 4)
    memory       = optional(string, "16Gi")
    pods         = optional(number, 110)
    storageClass = optional(string, "hollow-local")
    volumes = optional(list(object({
      name = string
      size = string
    })), [])
  })
  description = "The values of a PulumiMachineProviderSpec; the README explains each."

  validation {
    condition     = var.provider_spec.cpu > 0
    error_message = "cpu is the number of processors and must be positive: write it as cpu: 4."
  }

  validation {
    condition     = can(regex("^[1-9][0-9]*([KMGTPE]i?|k)?$", var.provider_spec.memory))
    error_message = "memory is a Kubernetes quantity in bytes: write it as memory: 16Gi."
  }

  validation {
    condition     = var.provider_spec.pods >= 1 && floor(var.provider_spec.pods) == var.provider_spec.pods
    error_message = "pods is a whole number and at least 1: write it as pods: 110."
  }

  validation {
    condition     = alltrue([for volume in var.provider_spec.volumes : can(regex("^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$", volume.name))])
    error_message = "A volume's name becomes a part of names: write 1 to 32 small letters, digits and '-', for example name: data."
  }

  validation {
    condition     = length(distinct([for volume in var.provider_spec.volumes : volume.name])) == length(var.provider_spec.volumes)
    error_message = "Two volumes have the same name: give each its own."
  }

  validation {
    condition     = alltrue([for volume in var.provider_spec.volumes : can(regex("^[1-9][0-9]*([KMGTPE]i?|k)?$", volume.size))])
    error_message = "A volume's size is a Kubernetes quantity in bytes: write it as size: 100Gi."
  }
}

variable "user_data" {
  type        = string
  description = "Not used: a simulated Node boots nothing."
  sensitive   = true
}
