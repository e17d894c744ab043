variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name becomes the server's name and hostname; its UID is in the metadata."
}

variable "provider_spec" {
  type = object({
    cloudsSecret   = optional(object({ name = optional(string, ""), namespace = optional(string, "") }))
    cloudName      = optional(string, "")
    flavor         = optional(string, "")
    image          = optional(string, "")
    keyName        = optional(string, "")
    userDataSecret = optional(object({ name = optional(string, ""), namespace = optional(string, "") }))
    networks = optional(list(object({
      uuid = optional(string, "")
      filter = optional(object({
        id          = optional(string, "")
        name        = optional(string, "")
        description = optional(string, "")
        tenantId    = optional(string, "")
        projectId   = optional(string, "")
        tags        = optional(string, "")
        tagsAny     = optional(string, "")
        notTags     = optional(string, "")
        notTagsAny  = optional(string, "")
      }), {})
      subnets = optional(list(object({
        uuid = optional(string, "")
        filter = optional(object({
          id              = optional(string, "")
          name            = optional(string, "")
          description     = optional(string, "")
          tenantId        = optional(string, "")
          projectId       = optional(string, "")
          tags            = optional(string, "")
          tagsAny         = optional(string, "")
          notTags         = optional(string, "")
          notTagsAny      = optional(string, "")
          ipVersion       = optional(number, 0)
          gateway_ip      = optional(string, "")
          cidr            = optional(string, "")
          ipv6AddressMode = optional(string, "")
          ipv6RaMode      = optional(string, "")
        }), {})
        portTags = optional(list(string), [])
      })), [])
      noAllowedAddressPairs = optional(bool, false)
      portTags              = optional(list(string), [])
      vnicType              = optional(string, "")
      profile               = optional(map(string), {})
      portSecurity          = optional(bool)
    })), [])
    ports = optional(list(object({
      networkID           = optional(string, "")
      nameSuffix          = optional(string, "")
      description         = optional(string, "")
      adminStateUp        = optional(bool)
      macAddress          = optional(string, "")
      fixedIPs            = optional(list(object({ subnetID = optional(string, ""), ipAddress = optional(string, "") })), [])
      securityGroups      = optional(list(string), [])
      allowedAddressPairs = optional(list(object({ ipAddress = optional(string, ""), macAddress = optional(string, "") })), [])
      tags                = optional(list(string), [])
      vnicType            = optional(string, "")
      profile             = optional(map(string), {})
      portSecurity        = optional(bool)
      trunk               = optional(bool)
    })), [])
    floatingIP       = optional(string, "")
    availabilityZone = optional(string, "")
    securityGroups = optional(list(object({
      uuid = optional(string, "")
      name = optional(string, "")
      filter = optional(object({
        id          = optional(string, "")
        name        = optional(string, "")
        description = optional(string, "")
        tenantId    = optional(string, "")
        projectId   = optional(string, "")
        tags        = optional(string, "")
        tagsAny     = optional(string, "")
        notTags     = optional(string, "")
        notTagsAny  = optional(string, "")
      }), {})
    })), [])
    trunk          = optional(bool, false)
    tags           = optional(list(string), [])
    serverMetadata = optional(map(string), {})
    configDrive    = optional(bool, false)
    rootVolume = optional(object({
      sourceUUID       = optional(string, "")
      volumeType       = optional(string, "")
      diskSize         = optional(number, 0)
      availabilityZone = optional(string, "")
    }))
    additionalBlockDevices = optional(list(object({
      name    = optional(string, "")
      sizeGiB = optional(number, 0)
      storage = optional(object({
        type   = optional(string, "")
        volume = optional(object({ type = optional(string, ""), availabilityZone = optional(string, "") }))
      }), {})
    })), [])
    serverGroupID   = optional(string, "")
    serverGroupName = optional(string, "")
  })
  description = "The fields of an OpenstackProviderSpec; the README explains each."

  validation {
    condition     = try(var.provider_spec.cloudsSecret.name, "") != ""
    error_message = "cloudsSecret.name is the Secret with the clouds.yaml: write it as cloudsSecret: {name: openstack-cloud-credentials}."
  }

  validation {
    condition     = var.provider_spec.cloudName != ""
    error_message = "cloudName is the cloud of the clouds.yaml to use: write it as cloudName: openstack."
  }

  validation {
    condition     = var.provider_spec.userDataSecret == null || try(var.provider_spec.userDataSecret.name, "") != ""
    error_message = "userDataSecret.name must be provided: write it as userDataSecret: {name: worker-user-data}, or leave userDataSecret out."
  }

  validation {
    condition = alltrue([
      for namespace in [try(var.provider_spec.cloudsSecret.namespace, ""), try(var.provider_spec.userDataSecret.namespace, "")] :
      namespace == "" || namespace == var.machine.namespace
    ])
    error_message = "Secrets are read from the Machine's own namespace: leave cloudsSecret.namespace and userDataSecret.namespace out, or write that one."
  }

  validation {
    condition     = var.provider_spec.flavor != ""
    error_message = "flavor is the name of the server's flavor: write it as flavor: m1.xlarge."
  }

  # What the server boots from.

  validation {
    condition     = var.provider_spec.image != "" || try(var.provider_spec.rootVolume.sourceUUID, "") != ""
    error_message = "image is the image to boot from, by its name or UUID: write it as image: rhcos."
  }

  validation {
    condition     = var.provider_spec.rootVolume == null ? true : var.provider_spec.rootVolume.diskSize >= 0 && floor(var.provider_spec.rootVolume.diskSize) == var.provider_spec.rootVolume.diskSize
    error_message = "rootVolume.diskSize is a whole number of GiB: write it as diskSize: 100."
  }

  validation {
    condition = alltrue([
      for device in var.provider_spec.additionalBlockDevices : can(regex("^[a-zA-Z0-9]([-_.a-zA-Z0-9]{0,58}[a-zA-Z0-9])?$", device.name)) && device.name != "root"
    ]) && length(distinct(var.provider_spec.additionalBlockDevices[*].name)) == length(var.provider_spec.additionalBlockDevices)
    error_message = "additionalBlockDevices[].name is each device's own: up to 60 letters, digits, '-', '_' and '.', the first and last a letter or digit, and not root. Write for example name: etcd."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.additionalBlockDevices : device.sizeGiB >= 1 && floor(device.sizeGiB) == device.sizeGiB])
    error_message = "additionalBlockDevices[].sizeGiB is a whole number, 1 at least: write it as sizeGiB: 10."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.additionalBlockDevices : contains(["Volume", "Local"], device.storage.type)])
    error_message = "additionalBlockDevices[].storage.type is Volume or Local: write it as storage: {type: Volume}."
  }

  # Networks and ports.

  validation {
    condition = length(var.provider_spec.ports) > 0 || anytrue([
      for network in var.provider_spec.networks : length(network.subnets) > 0 || network.uuid != "" || join("", values(network.filter)) != ""
    ])
    error_message = "networks and ports say what the server is connected to: write at least one, for example networks: [{uuid: UUID}]."
  }

  validation {
    condition     = alltrue([for port in var.provider_spec.ports : port.networkID != "" || length(port.fixedIPs) > 0])
    error_message = "ports[].networkID is the UUID of the port's network: write it, or fixedIPs with a subnetID of the network."
  }

  validation {
    condition = alltrue([for suffix in var.provider_spec.ports[*].nameSuffix : can(regex("^[-_.a-zA-Z0-9]{0,60}$", suffix)) && !can(regex("^[0-9]+$", suffix))]) && (
      length(distinct(compact(var.provider_spec.ports[*].nameSuffix))) == length(compact(var.provider_spec.ports[*].nameSuffix))
    )
    error_message = "ports[].nameSuffix is each port's own: letters, digits, '-', '_' and '.', and no number, which other ports are called by. Write for example nameSuffix: storage."
  }

  validation {
    condition     = alltrue([for port in var.provider_spec.ports : length(port.description) <= 200])
    error_message = "ports[].description has at most 200 characters, as the Machine's UID is added to it: shorten it."
  }

  validation {
    condition     = alltrue(flatten([for port in var.provider_spec.ports : [for pair in port.allowedAddressPairs : pair.ipAddress != ""]]))
    error_message = "ports[].allowedAddressPairs[].ipAddress is an address, or a network as 192.0.2.0/24: write it."
  }

  validation {
    condition     = var.provider_spec.floatingIP == "" || can(cidrhost("${var.provider_spec.floatingIP}/32", 0))
    error_message = "floatingIP is an address: write it as 203.0.113.7."
  }

  # Tags and metadata.

  validation {
    condition     = length(var.provider_spec.tags) <= 50 && alltrue([for tag in var.provider_spec.tags : can(regex("^[^/,]{1,60}$", tag))])
    error_message = "tags has at most 50 tags of 1 to 60 characters, without '/' and ',', which Nova takes no others of: correct that."
  }

  validation {
    condition = alltrue([
      for tag in concat(
        flatten(var.provider_spec.networks[*].portTags), flatten([for network in var.provider_spec.networks : network.subnets[*].portTags]),
        flatten(var.provider_spec.ports[*].tags),
      ) : can(regex("^[^,]{1,255}$", tag))
    ])
    error_message = "portTags and ports[].tags have 1 to 255 characters, without ',': correct that."
  }

  validation {
    condition = alltrue([
      for key, value in var.provider_spec.serverMetadata : can(regex("^[-a-zA-Z0-9_:. ]{1,255}$", key)) && length(value) <= 255
    ])
    error_message = "serverMetadata has keys of letters, digits, '-', '_', ':', '.' and spaces, 255 characters at most as values have: correct that."
  }
}

variable "user_data" {
  type        = string
  description = "The Ignition configuration that the server reads at its first boot."
  sensitive   = true

  validation {
    condition     = length(base64encode(var.user_data)) <= 65535
    error_message = "OpenStack takes at most 65535 bytes of user data in base64: let it point to the rest, as Ignition configurations that the installer writes do."
  }
}

variable "cluster" {
  type = object({
    installation = optional(string, "")
    platform     = optional(string, "")
    api_vips     = optional(list(string), [])
    ingress_vips = optional(list(string), [])
  })
  description = "What the cluster's Infrastructure says. The ports of networks may use the addresses of the API and of ingress."
  default     = {}
}

variable "recorded" {
  type = object({
    network_ids        = map(string)
    subnet_ids         = map(object({ id = string, network = string }))
    security_group_ids = list(string)
    shared_addresses   = list(string)
    image_id           = string
  })
  description = "What was found by name when the server was made; null until it is there."
  default     = null
}
