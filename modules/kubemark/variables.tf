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
    architecture = optional(string, "amd64")
    instanceType = optional(string, "hollow")
    region       = optional(string, "")
    zone         = optional(string, "")
    # How long the Node is Ready, and then not: for good, or in turns.
    turnUnhealthyAfter        = optional(bool, false)
    turnUnhealthyPeriodically = optional(bool, false)
    healthyDuration           = optional(string, "0s")
    unhealthyDuration         = optional(string, "0s")
    # What it has besides.
    labels = optional(map(string), {})
    taints = optional(list(object({
      key    = string
      value  = optional(string, "")
      effect = string
    })), [])
    credentialsSecret = object({ name = string })
    userDataSecret    = optional(object({ name = string }))
    # Not used: nothing runs on a simulated Node.
    image           = optional(string)
    deletionTimeout = optional(string)
  })
  description = "The fields of a KubemarkMachineProviderConfig; the README explains each."

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
    condition     = contains(["amd64", "arm64", "ppc64le", "s390x"], var.provider_spec.architecture)
    error_message = "architecture is one of amd64, arm64, ppc64le and s390x: write it as architecture: amd64."
  }

  validation {
    condition     = can(regex("^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$", var.provider_spec.instanceType))
    error_message = "instanceType becomes a label's value: write 1 to 63 letters, digits, '-', '_' and '.', for example instanceType: hollow."
  }

  validation {
    condition = alltrue([
      for value in [var.provider_spec.region, var.provider_spec.zone] : can(regex("^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$", value))
    ])
    error_message = "region and zone become values of labels: write at most 63 letters, digits, '-', '_' and '.', for example zone: zone-a."
  }

  validation {
    condition = alltrue([
      for value in [var.provider_spec.healthyDuration, var.provider_spec.unhealthyDuration] : can(regex("^([0-9]+([.][0-9]+)?(ms|s|m|h))+$", value))
    ])
    error_message = "healthyDuration and unhealthyDuration are durations: write for example healthyDuration: 1m30s."
  }

  validation {
    condition = !var.provider_spec.turnUnhealthyPeriodically || alltrue([
      for value in [var.provider_spec.healthyDuration, var.provider_spec.unhealthyDuration] : can(regex("[1-9]", value))
    ])
    error_message = "turnUnhealthyPeriodically takes turns: write healthyDuration and unhealthyDuration, for example healthyDuration: 40s."
  }

  validation {
    condition     = alltrue([for taint in var.provider_spec.taints : contains(["NoSchedule", "PreferNoSchedule", "NoExecute"], taint.effect)])
    error_message = "A taint's effect is one of NoSchedule, PreferNoSchedule and NoExecute: write it as effect: NoSchedule."
  }
}

variable "cluster" {
  type        = object({ installation = optional(string, "") })
  description = "The UID of the operator's installation, which the Node bears."
  default     = {}
}

variable "user_data" {
  type        = string
  description = "Not used: a simulated Node boots nothing."
  sensitive   = true
}
