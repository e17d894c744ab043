variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name becomes the server's name and hostname; its UID is in the metadata."

  validation {
    condition     = length(var.machine.name) <= 63
    error_message = "The Machine's name becomes the hostname, which has at most 63 characters: give the MachineSet a shorter name."
  }
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
    condition     = contains(["", var.provider_spec.image], try(var.provider_spec.rootVolume.sourceUUID, "")) || var.provider_spec.image == ""
    error_message = "rootVolume.sourceUUID is the old name of image, and names another one: leave it out."
  }

  validation {
    condition     = var.provider_spec.rootVolume == null ? true : var.provider_spec.rootVolume.diskSize >= 1 && floor(var.provider_spec.rootVolume.diskSize) == var.provider_spec.rootVolume.diskSize
    error_message = "rootVolume.diskSize is a whole number of GiB, 1 at least: write it as diskSize: 100."
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
    condition     = alltrue([for device in var.provider_spec.additionalBlockDevices : contains(device.storage.volume == null ? ["Volume", "Local"] : ["Volume"], device.storage.type)])
    error_message = "additionalBlockDevices[].storage.type is Volume or Local, and volume is for type Volume: write it as storage: {type: Volume}."
  }

  validation {
    condition     = length(var.provider_spec.additionalBlockDevices) <= 4
    error_message = "This stack makes at most 4 additionalBlockDevices: leave the others out, or use the provider module openstack."
  }

  validation {
    condition     = join("", concat([try(var.provider_spec.rootVolume.availabilityZone, "")], [for device in var.provider_spec.additionalBlockDevices : try(device.storage.volume.availabilityZone, "")])) == ""
    error_message = "Nova makes this stack's volumes, in the server's zone: leave the availabilityZone of rootVolume and additionalBlockDevices out, or use the provider module openstack."
  }

  # Networks and ports.

  validation {
    condition     = length(var.provider_spec.networks) + length(var.provider_spec.ports) > 0
    error_message = "networks and ports say what the server is connected to: write one, for example networks: [{uuid: UUID}]."
  }

  validation {
    condition     = length(var.provider_spec.networks) + length(var.provider_spec.ports) <= 1
    error_message = "This stack makes one port: leave one entry in networks and ports together, or use the provider module openstack."
  }

  validation {
    condition     = alltrue([for network in var.provider_spec.networks : length(network.subnets) <= 1])
    error_message = "This stack makes one port, in one subnet: leave one entry in networks[].subnets, or use the provider module openstack."
  }

  validation {
    condition     = !var.provider_spec.trunk && !anytrue([for port in var.provider_spec.ports : port.trunk == null ? false : port.trunk])
    error_message = "This stack makes no trunks: leave trunk and ports[].trunk out, or use the provider module openstack."
  }

  validation {
    condition     = alltrue([for network in var.provider_spec.networks : length(network.subnets) > 0 || network.uuid != "" || join("", values(network.filter)) != ""])
    error_message = "networks[] names a network or its subnets: write uuid, filter or subnets."
  }

  validation {
    condition = alltrue(flatten([
      for network in var.provider_spec.networks : [
        for subnet in network.subnets : subnet.uuid != "" || subnet.filter.ipVersion != 0 || join("", [for name, value in subnet.filter : value if name != "ipVersion"]) != ""
      ]
    ]))
    error_message = "networks[].subnets[] names a subnet: write uuid or filter, for example filter: {name: NAME}."
  }

  validation {
    condition = alltrue([
      for type in concat(var.provider_spec.networks[*].vnicType, var.provider_spec.ports[*].vnicType) :
      contains(["", "normal", "direct", "direct-physical", "macvtap", "baremetal", "virtio-forwarder"], type)
    ])
    error_message = "vnicType is normal, direct, direct-physical, macvtap, baremetal or virtio-forwarder; the provider knows no other: write one, or leave it out."
  }

  validation {
    condition     = alltrue([for port in var.provider_spec.ports : port.networkID != ""])
    error_message = "ports[].networkID is the UUID of the port's network: write it."
  }

  validation {
    condition     = alltrue([for suffix in var.provider_spec.ports[*].nameSuffix : can(regex("^[-_.a-zA-Z0-9]{0,60}$", suffix)) && !can(regex("^[0-9]+$", suffix))])
    error_message = "ports[].nameSuffix has letters, digits, '-', '_' and '.', and is no number: write for example nameSuffix: storage."
  }

  validation {
    condition     = alltrue([for port in var.provider_spec.ports : length(port.description) <= 200])
    error_message = "ports[].description has at most 200 characters, as the Machine's UID is added to it: shorten it."
  }

  validation {
    condition     = alltrue(flatten([for port in var.provider_spec.ports : [for fixed in port.fixedIPs : fixed.subnetID != ""]]))
    error_message = "ports[].fixedIPs[].subnetID is the UUID of the address's subnet: write it."
  }

  validation {
    condition     = alltrue(flatten([for port in var.provider_spec.ports : [for pair in port.allowedAddressPairs : pair.ipAddress != ""]]))
    error_message = "ports[].allowedAddressPairs[].ipAddress is an address, or a network as 192.0.2.0/24: write it."
  }

  validation {
    condition     = alltrue([for port in var.provider_spec.ports : port.portSecurity == false ? length(port.securityGroups) + length(port.allowedAddressPairs) == 0 : true])
    error_message = "A port without security has no securityGroups and allowedAddressPairs: leave them out, or portSecurity: false."
  }

  validation {
    condition     = var.provider_spec.floatingIP == ""
    error_message = "This stack gives no port a floating address: leave floatingIP out, or use the provider module openstack."
  }

  # Security groups, server group, tags.

  validation {
    condition     = alltrue([for group in var.provider_spec.securityGroups : "${group.uuid}${group.name}${join("", values(group.filter))}" != ""])
    error_message = "securityGroups[] names a security group: write uuid, name or filter."
  }

  validation {
    condition     = length([for group in var.provider_spec.securityGroups : group if "${group.uuid}${group.filter.id}" == ""]) <= 1
    error_message = "This stack looks for one security group: name the others by securityGroups[].uuid, or use the provider module openstack."
  }

  validation {
    condition     = var.provider_spec.serverGroupName == ""
    error_message = "This stack makes no server group: name one by serverGroupID, or use the provider module openstack."
  }

  validation {
    condition = length(var.provider_spec.tags) <= 50 && alltrue([
      for tag in concat(
        var.provider_spec.tags, flatten(var.provider_spec.networks[*].portTags),
        flatten([for network in var.provider_spec.networks : network.subnets[*].portTags]), flatten(var.provider_spec.ports[*].tags),
      ) : can(regex("^[^/,]{1,60}$", tag))
    ])
    error_message = "tags has at most 50 tags; they, portTags and ports[].tags have 1 to 60 characters, without '/' and ',': correct that."
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
