variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name becomes the virtual machine's name and hostname; its UID is in the description."

  validation {
    condition     = length(var.machine.name) <= 63
    error_message = "The Machine's name becomes the hostname, which has at most 63 characters: give the MachineSet a shorter name."
  }
}

variable "provider_spec" {
  type = object({
    cluster        = optional(object({ type = optional(string, ""), uuid = optional(string), name = optional(string) }), {})
    image          = optional(object({ type = optional(string, ""), uuid = optional(string), name = optional(string) }), {})
    subnets        = optional(list(object({ type = optional(string, ""), uuid = optional(string), name = optional(string) })), [])
    vcpusPerSocket = optional(number, 0)
    vcpuSockets    = optional(number, 0)
    memorySize     = optional(string, "0")
    systemDiskSize = optional(string, "0")
    bootType       = optional(string, "")
    project        = optional(object({ type = optional(string, ""), uuid = optional(string), name = optional(string) }), {})
    categories     = optional(list(object({ key = optional(string, ""), value = optional(string, "") })), [])
    gpus           = optional(list(object({ type = optional(string, ""), deviceID = optional(number), name = optional(string) })), [])
    dataDisks = optional(list(object({
      diskSize = optional(string, "0")
      deviceProperties = optional(object({
        deviceType  = optional(string, "")
        adapterType = optional(string, "")
        deviceIndex = optional(number, 0)
      }))
      storageConfig = optional(object({
        diskMode         = optional(string, "")
        storageContainer = optional(object({ type = optional(string, ""), uuid = optional(string) }))
      }))
      dataSource = optional(object({ type = optional(string, ""), uuid = optional(string), name = optional(string) }))
    })), [])
    userDataSecret    = optional(object({ name = optional(string, "") }))
    credentialsSecret = optional(object({ name = optional(string, "") }))
    failureDomain     = optional(object({ name = optional(string, "") }))
  })
  description = "The fields of a NutanixMachineProviderConfig; the README explains each."

  validation {
    condition     = contains(["name", "uuid"], var.provider_spec.cluster.type)
    error_message = "cluster type must be one of name or uuid: write the Prism Element as cluster: {type: name, name: NAME}."
  }

  validation {
    condition     = !contains(["name", "uuid"], var.provider_spec.cluster.type) || coalesce(try(var.provider_spec.cluster[var.provider_spec.cluster.type], null), " ") != " "
    error_message = "cluster name must be provided, or its UUID where cluster.type is uuid: write it as cluster: {type: name, name: NAME}."
  }

  validation {
    condition     = contains(["name", "uuid"], var.provider_spec.image.type)
    error_message = "image type must be one of name or uuid: write it as image: {type: name, name: NAME}."
  }

  validation {
    condition     = !contains(["name", "uuid"], var.provider_spec.image.type) || coalesce(try(var.provider_spec.image[var.provider_spec.image.type], null), " ") != " "
    error_message = "image name must be provided, or its UUID where image.type is uuid: write it as image: {type: name, name: NAME}."
  }

  validation {
    condition     = length(var.provider_spec.subnets) > 0
    error_message = "missing subnets: nodes may fail to start if no subnets are configured: write at least - {type: uuid, uuid: UUID}."
  }

  validation {
    condition     = length(var.provider_spec.subnets) <= 32
    error_message = "must have at most 32 items: leave some subnets out."
  }

  validation {
    condition     = alltrue([for subnet in var.provider_spec.subnets : contains(["name", "uuid"], subnet.type)])
    error_message = "subnet type must be one of name or uuid: write subnets[] as {type: uuid, uuid: UUID}."
  }

  validation {
    condition = alltrue([
      for subnet in var.provider_spec.subnets : !contains(["name", "uuid"], subnet.type) || coalesce(try(subnet[subnet.type], null), " ") != " "
    ])
    error_message = "subnet name must be provided, or its UUID where the type is uuid: write subnets[] as {type: uuid, uuid: UUID}."
  }

  validation {
    condition     = length(distinct([for subnet in var.provider_spec.subnets : jsonencode(subnet)])) == length(var.provider_spec.subnets)
    error_message = "should not configure duplicate subnet value: leave out what subnets has twice."
  }

  validation {
    condition     = var.provider_spec.vcpuSockets >= 1 && floor(var.provider_spec.vcpuSockets) == var.provider_spec.vcpuSockets
    error_message = "The minimum vCPU sockets of the VM is 1. vcpuSockets is a whole number: write for example vcpuSockets: 4."
  }

  validation {
    condition     = var.provider_spec.vcpusPerSocket >= 1 && floor(var.provider_spec.vcpusPerSocket) == var.provider_spec.vcpusPerSocket
    error_message = "The minimum number of vCPUs per socket of the VM is 1. vcpusPerSocket is a whole number: write for example vcpusPerSocket: 1."
  }

  validation {
    condition = try(floor(tonumber(regex("^([0-9]+(?:[.][0-9]+)?)([A-Za-z]*)$", var.provider_spec.memorySize)[0]) / 1048576 * {
      "" = 1, k = 1000, M = 1000000, G = 1000000000, T = 1000000000000, Ki = 1024, Mi = 1048576, Gi = 1073741824, Ti = 1099511627776
    }[regex("^([0-9]+(?:[.][0-9]+)?)([A-Za-z]*)$", var.provider_spec.memorySize)[1]]) >= 2048, false)
    error_message = "The minimum memorySize is 2Gi bytes: write it as memorySize: 16Gi."
  }

  validation {
    condition = try(floor(tonumber(regex("^([0-9]+(?:[.][0-9]+)?)([A-Za-z]*)$", var.provider_spec.systemDiskSize)[0]) / 1048576 * {
      "" = 1, k = 1000, M = 1000000, G = 1000000000, T = 1000000000000, Ki = 1024, Mi = 1048576, Gi = 1073741824, Ti = 1099511627776
    }[regex("^([0-9]+(?:[.][0-9]+)?)([A-Za-z]*)$", var.provider_spec.systemDiskSize)[1]]) >= 20480, false)
    error_message = "The minimum systemDiskSize is 20Gi bytes: write it as systemDiskSize: 120Gi."
  }

  validation {
    condition     = contains(["", "Legacy", "UEFI", "SecureBoot"], var.provider_spec.bootType)
    error_message = "valid bootType values are: \"\", \"Legacy\", \"UEFI\", \"SecureBoot\". Leave it out for what Prism Central takes."
  }

  validation {
    condition     = contains(["", "name", "uuid"], var.provider_spec.project.type)
    error_message = "project type must be one of name or uuid: write it as project: {type: name, name: NAME}."
  }

  validation {
    condition     = !contains(["name", "uuid"], var.provider_spec.project.type) || coalesce(try(var.provider_spec.project[var.provider_spec.project.type], null), " ") != " "
    error_message = "project name must be provided, or its UUID where project.type is uuid: write it as project: {type: name, name: NAME}."
  }

  validation {
    condition     = alltrue([for category in var.provider_spec.categories : length(category.key) >= 1 && length(category.key) <= 64])
    error_message = "key must be a string with length between 1 and 64. Write categories[] as {key: KEY, value: VALUE}."
  }

  validation {
    condition     = alltrue([for category in var.provider_spec.categories : length(category.value) >= 1 && length(category.value) <= 64])
    error_message = "value must be a string with length between 1 and 64. Write categories[] as {key: KEY, value: VALUE}."
  }

  validation {
    condition     = alltrue([for gpu in var.provider_spec.gpus : contains(["DeviceID", "Name"], gpu.type)])
    error_message = "invalid gpu identifier type, the valid types: \"DeviceID\", \"Name\". Write gpus[] as {type: Name, name: NAME}."
  }

  validation {
    condition = alltrue([
      for gpu in var.provider_spec.gpus : gpu.type == "DeviceID" ? gpu.deviceID != null : gpu.type == "Name" ? coalesce(gpu.name, " ") != " " : true
    ])
    error_message = "missing gpu deviceID, or name where the type is Name: write gpus[] as {type: Name, name: NAME}."
  }

  validation {
    condition = alltrue([for disk in var.provider_spec.dataDisks : try(floor(tonumber(regex("^([0-9]+(?:[.][0-9]+)?)([A-Za-z]*)$", disk.diskSize)[0]) / 1048576 * {
      "" = 1, k = 1000, M = 1000000, G = 1000000000, T = 1000000000000, Ki = 1024, Mi = 1048576, Gi = 1073741824, Ti = 1099511627776
    }[regex("^([0-9]+(?:[.][0-9]+)?)([A-Za-z]*)$", disk.diskSize)[1]]) >= 1024, false)])
    error_message = "The minimum diskSize is 1Gi bytes. Write dataDisks[].diskSize as diskSize: 100Gi."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : disk.deviceProperties == null ? true : contains(["Disk", "CDRom"], disk.deviceProperties.deviceType)])
    error_message = "invalid device type, the valid types: \"Disk\", \"CDRom\". Write dataDisks[].deviceProperties as {deviceType: Disk, adapterType: SCSI, deviceIndex: 1}."
  }

  validation {
    condition = alltrue([
      for disk in var.provider_spec.dataDisks :
      try(disk.deviceProperties.deviceType, "") == "CDRom" ? contains(["IDE", "SATA"], disk.deviceProperties.adapterType) :
      try(disk.deviceProperties.deviceType, "") == "Disk" ? contains(["SCSI", "IDE", "PCI", "SATA", "SPAPR"], disk.deviceProperties.adapterType) : true
    ])
    error_message = "invalid adapter type for the device type, the valid values: of a Disk \"SCSI\", \"IDE\", \"PCI\", \"SATA\", \"SPAPR\", of a CDRom \"IDE\", \"SATA\". Correct dataDisks[].deviceProperties.adapterType."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : try(disk.deviceProperties.deviceIndex >= 0 && floor(disk.deviceProperties.deviceIndex) == disk.deviceProperties.deviceIndex, true)])
    error_message = "invalid device index, the valid values are non-negative integers. Correct dataDisks[].deviceProperties.deviceIndex."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : disk.storageConfig == null ? true : contains(["Standard", "Flash"], disk.storageConfig.diskMode)])
    error_message = "invalid disk mode, the valid values: \"Standard\", \"Flash\". Write dataDisks[].storageConfig as {diskMode: Standard}."
  }

  validation {
    condition = alltrue([
      for disk in var.provider_spec.dataDisks : try(disk.storageConfig.storageContainer, null) == null ? true :
      disk.storageConfig.storageContainer.type == "uuid" && coalesce(disk.storageConfig.storageContainer.uuid, " ") != " "
    ])
    error_message = "invalid storageContainer reference, the valid type: \"uuid\". Write dataDisks[].storageConfig.storageContainer as {type: uuid, uuid: UUID}."
  }

  validation {
    condition = alltrue([
      for disk in var.provider_spec.dataDisks : try(disk.storageConfig.diskMode, "") != "Flash" || try(disk.storageConfig.storageContainer, null) != null
    ])
    error_message = "dataDisks[].storageConfig.diskMode Flash needs a storageContainer, which the provider does not leave out: write it as storageContainer: {type: uuid, uuid: UUID}."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : disk.dataSource == null ? true : contains(["name", "uuid"], disk.dataSource.type)])
    error_message = "invalid disk dataSource reference type, the valid values: \"uuid\", \"name\". Write dataDisks[].dataSource as {type: name, name: NAME}."
  }

  validation {
    condition = alltrue([
      for disk in var.provider_spec.dataDisks : disk.dataSource == null ? true :
      !contains(["name", "uuid"], disk.dataSource.type) || coalesce(try(disk.dataSource[disk.dataSource.type], null), " ") != " "
    ])
    error_message = "missing disk dataSource name, or uuid where the type is uuid: write dataDisks[].dataSource as {type: name, name: NAME}."
  }

  validation {
    condition     = try(var.provider_spec.userDataSecret.name, "") != ""
    error_message = "userDataSecret must be provided: write it as userDataSecret: {name: worker-user-data}."
  }

  validation {
    condition     = try(var.provider_spec.credentialsSecret.name, "") != ""
    error_message = "credentialsSecret must be provided: write it as credentialsSecret: {name: nutanix-credentials}."
  }
}

variable "cluster" {
  type = object({
    installation    = optional(string, "")
    platform        = optional(string)
    failure_domains = optional(list(object({ name = string, compute_cluster = string, networks = list(string) })), [])
  })
  description = "What is known of the cluster."
  default     = {}
}

variable "user_data" {
  type        = string
  description = "The Ignition configuration that the virtual machine reads at its first boot, or other user data."
  sensitive   = true
}

variable "recorded" {
  type = object({
    cluster_uuid = string
    subnet_uuids = list(string)
    image_uuids  = list(string)
    project_uuid = string
    region       = string
  })
  description = "What was found by name when the virtual machine was made; null until it is there."
  default     = null
}
