variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself."
}

variable "provider_spec" {
  type = object({
    size  = string
    cpu   = optional(number, 2)
    spot  = optional(bool)
    quota = optional(number)
    placement = optional(object({
      zone = string
      rack = optional(string, "any")
    }))
    labels   = optional(map(string), {})
    networks = optional(set(string), [])
    disks = optional(list(object({
      gib    = number
      labels = optional(map(string))
      type   = optional(string, "ssd")
    })), [])
    range             = optional(tuple([number, number]))
    apiToken          = optional(number)
    credentialsSecret = object({ name = string })
    userDataSecret    = optional(object({ name = string }))
  })
  description = "The fields of the providerSpec."
}

variable "user_data" {
  type        = string
  description = "What the instance runs at its first boot."
  sensitive   = true
}
