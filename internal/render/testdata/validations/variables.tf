variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself."

  validation {
    condition     = length(var.machine.name) <= 20
    error_message = "Give the MachineSet a shorter name."
  }

  validation {
    condition     = startswith(var.machine.name, "worker-") || var.machine.labels["tier"] == "any"
    error_message = "Begin the name with worker-."
  }
}

variable "provider_spec" {
  type = object({
    size      = string
    cpu       = optional(number, 2)
    memory    = optional(string, "16Gi")
    region    = optional(string, "")
    zone      = optional(string, "")
    placement = optional(object({ zone = string, rack = optional(string, "any") }))
    disks = optional(list(object({
      gib    = number
      type   = optional(string, "ssd")
      labels = optional(map(string), {})
    })), [])
    labels            = optional(map(string), {})
    networks          = optional(set(string), [])
    cidr              = optional(string)
    image             = optional(string)
    password          = optional(string)
    quota             = optional(number)
    shelf             = optional(string)
    suffix            = optional(string, "")
    window            = optional(object({ start = optional(number), end = optional(number) }))
    credentialsSecret = object({ name = string })
    userDataSecret    = optional(object({ name = string }))
  })
  description = "The fields of the providerSpec."

  validation {
    condition     = contains(["small", "large"], var.provider_spec.size)
    error_message = "size is small or large, not ${var.provider_spec.size}."
  }

  validation {
    condition     = var.provider_spec.cpu > 0 && floor(var.provider_spec.cpu) == var.provider_spec.cpu
    error_message = "cpu is a whole number: write it as cpu: 4."
  }

  validation {
    condition     = can(regex("^[1-9][0-9]*([KMGT]i?)?$", var.provider_spec.memory))
    error_message = "Write it as memory: 16Gi."
  }

  validation {
    condition = alltrue([
      for value in [var.provider_spec.region, var.provider_spec.zone] : can(regex("^[a-z0-9-]*$", value))
    ])
    error_message = "region and zone are lower-case."
  }

  validation {
    condition     = var.provider_spec.placement == null || contains(["z-1", "z-2"], var.provider_spec.placement.zone)
    error_message = "Zones are z-1 and z-2."
  }

  validation {
    condition = alltrue([
      for disk in var.provider_spec.disks : disk.gib >= 1 && contains(["ssd", "hdd"], disk.type)
    ])
    error_message = "A disk has at least 1 GiB and is ssd or hdd."
  }

  validation {
    condition = alltrue([
      for disk in var.provider_spec.disks : alltrue([for key, value in disk.labels : length(value) <= 5 if key != "free"])
    ])
    error_message = "Labels of disks have at most 5 characters."
  }

  validation {
    condition     = alltrue([for network in var.provider_spec.networks : startswith(network, "net-")])
    error_message = "Networks begin with net-."
  }

  validation {
    condition     = var.provider_spec.cidr == null || can(cidrhost(var.provider_spec.cidr, 0))
    error_message = "Write a prefix, for example cidr: 10.0.0.0/16."
  }

  validation {
    condition     = var.provider_spec.image == null ? true : regex("^ami-(.*)$", var.provider_spec.image)[0] != ""
    error_message = "An image begins with ami-."
  }

  validation {
    condition     = var.provider_spec.password == null || try(length(var.provider_spec.password) >= 8, false)
    error_message = var.provider_spec.password == null ? "Write one." : "The password ${var.provider_spec.password} is too short."
  }

  validation {
    condition     = try(var.provider_spec.quota > 0, true)
    error_message = "A quota is positive."
  }

  validation {
    condition     = var.provider_spec.shelf == "" || !contains(["s-0"], var.provider_spec.shelf)
    error_message = "The shelf ${var.provider_spec.shelf == "s-9" ? null : "s-0"} is full; leave it empty for any."
  }

  validation {
    condition     = length("${var.machine.name}${var.provider_spec.suffix}") <= 24
    error_message = "Write a shorter suffix."
  }

  validation {
    condition     = var.provider_spec.window == null ? true : var.provider_spec.window.start < var.provider_spec.window.end
    error_message = "A window ends after it starts."
  }

  validation {
    condition     = length(setsubtract(keys(var.provider_spec.labels), ["team", "cost"])) == 0
    error_message = "Labels are team and cost."
  }
}

variable "user_data" {
  type        = string
  description = "What the instance runs at its first boot."
  sensitive   = true

  validation {
    condition     = var.user_data == "" || startswith(var.user_data, "#")
    error_message = "User data begins with #!/bin/sh or #cloud-config."
  }
}
