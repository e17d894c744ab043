variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
}

variable "provider_spec" {
  type = object({
    server     = optional(string, "vcenter.example.com")
    annotation = optional(string, "")
    scsiType   = optional(string, "pvscsi")
    counted    = optional(bool, false)
    each       = optional(bool, false)
  })
}

variable "user_data" {
  type      = string
  sensitive = true
}
