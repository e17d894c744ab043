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
    condition     = length(var.machine.name) <= 63
    error_message = "The Machine's name has at most 63 characters: give the MachineSet a shorter name."
  }
}

variable "provider_spec" {
  type = object({
    instanceType      = optional(string, "small")
    zone              = optional(string, "zone-a")
    image             = optional(string, "rhcos")
    diskGiB           = optional(number, 20)
    tags              = optional(map(string), {})
    password          = optional(string, "")
    pool              = optional(string, "")
    credentialsSecret = object({ name = string })
    userDataSecret    = optional(object({ name = string }))
  })
  description = "The fields of an ExampleProviderSpec."

  validation {
    condition     = var.provider_spec.diskGiB >= 1
    error_message = "diskGiB is a positive number: write it as diskGiB: 20."
  }
}

variable "user_data" {
  type        = string
  description = "What the instance reads at its first boot."
  sensitive   = true

  # Nobody knows before a run, so a preview must not refuse it.
  validation {
    condition     = var.user_data == "" || can(jsondecode(var.user_data).ignition)
    error_message = "User data is an Ignition configuration: put one into the Secret."
  }
}
