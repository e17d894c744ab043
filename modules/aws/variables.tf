variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name and UID, and the name of its cluster, are tags of the instance."
}

variable "cluster" {
  type = object({
    installation  = optional(string, "")
    ip_family     = optional(string)
    resource_tags = optional(list(object({ key = string, value = string })), [])
  })
  description = "What the cluster's Infrastructure says: its families of IP addresses, and tags for what is made for it."
  default     = {}
}

variable "provider_spec" {
  type = object({
    ami = optional(object({
      id      = optional(string, "")
      arn     = optional(string, "")
      filters = optional(list(object({ name = string, values = optional(list(string), []) })), [])
    }), {})
    instanceType = optional(string, "")
    cpuOptions   = optional(object({ confidentialCompute = optional(string, "") }))
    tags         = optional(list(object({ name = string, value = optional(string, "") })), [])
    iamInstanceProfile = optional(object({
      id      = optional(string, "")
      arn     = optional(string, "")
      filters = optional(list(object({ name = string, values = optional(list(string), []) })), [])
    }))
    userDataSecret       = optional(object({ name = optional(string, "") }))
    credentialsSecret    = optional(object({ name = optional(string, "") }))
    keyName              = optional(string, "")
    deviceIndex          = optional(number, 0)
    publicIp             = optional(bool)
    networkInterfaceType = optional(string, "")
    securityGroups = optional(list(object({
      id      = optional(string, "")
      arn     = optional(string, "")
      filters = optional(list(object({ name = string, values = optional(list(string), []) })), [])
    })), [])
    subnet = optional(object({
      id      = optional(string, "")
      arn     = optional(string, "")
      filters = optional(list(object({ name = string, values = optional(list(string), []) })), [])
    }), {})
    placement = optional(object({
      region           = optional(string, "")
      availabilityZone = optional(string, "")
      tenancy          = optional(string, "")
      host = optional(object({
        affinity = optional(string, "")
        dedicatedHost = optional(object({
          allocationStrategy = optional(string, "UserProvided")
          id                 = optional(string, "")
          dynamicHostAllocation = optional(object({
            tags = optional(list(object({ name = string, value = optional(string, "") })), [])
          }))
        }))
      }))
    }), {})
    loadBalancers = optional(list(object({ name = optional(string, ""), type = optional(string, "") })), [])
    blockDevices = optional(list(object({
      deviceName  = optional(string, "")
      noDevice    = optional(string)
      virtualName = optional(string)
      ebs = optional(object({
        deleteOnTermination = optional(bool, true)
        encrypted           = optional(bool)
        iops                = optional(number, 0)
        throughputMib       = optional(number)
        volumeSize          = optional(number)
        volumeType          = optional(string, "")
        kmsKey = optional(object({
          id      = optional(string, "")
          arn     = optional(string, "")
          filters = optional(list(object({ name = string, values = optional(list(string), []) })), [])
        }), {})
      }))
    })), [])
    spotMarketOptions       = optional(object({ maxPrice = optional(string, "") }))
    metadataServiceOptions  = optional(object({ authentication = optional(string, "") }), {})
    placementGroupName      = optional(string, "")
    placementGroupPartition = optional(number)
    capacityReservationId   = optional(string, "")
    marketType              = optional(string, "")
  })
  description = "The fields of an AWSMachineProviderConfig; the README explains each."

  validation {
    condition     = var.provider_spec.ami.id != ""
    error_message = "providerSpec.ami: Required value: expected providerSpec.ami.id to be populated"
  }

  validation {
    condition     = var.provider_spec.instanceType != ""
    error_message = "providerSpec.instanceType: Required value: expected providerSpec.instanceType to be populated"
  }

  validation {
    condition     = var.provider_spec.placement.region != ""
    error_message = "providerSpec.placement.region: Required value: expected providerSpec.placement.region to be populated"
  }

  validation {
    # It becomes a part of host names.
    condition     = can(regex("^[a-z0-9-]{0,32}$", var.provider_spec.placement.region))
    error_message = "placement.region is the name of a region: write it as region: us-east-1."
  }

  validation {
    condition     = var.provider_spec.userDataSecret != null
    error_message = "providerSpec.userDataSecret: Required value: expected providerSpec.userDataSecret to be populated"
  }

  validation {
    condition     = var.provider_spec.userDataSecret == null ? true : var.provider_spec.userDataSecret.name != ""
    error_message = "providerSpec.userDataSecret.name: Required value: expected providerSpec.userDataSecret.name to be provided"
  }

  validation {
    condition     = var.provider_spec.credentialsSecret != null
    error_message = "providerSpec.credentialsSecret: Required value: expected providerSpec.credentialsSecret to be populated"
  }

  validation {
    condition     = var.provider_spec.credentialsSecret == null ? true : var.provider_spec.credentialsSecret.name != ""
    error_message = "credentialsSecret.name is a Secret with keys of AWS: write it as credentialsSecret: {name: aws-cloud-credentials}."
  }

  validation {
    condition     = alltrue([for tag in var.provider_spec.tags : length(tag.name) >= 1 && length(tag.name) <= 128 && length(tag.value) <= 256])
    error_message = "tags[].name has 1 to 128 characters, and tags[].value 256 at most: shorten it."
  }

  validation {
    condition     = length(distinct(concat(var.provider_spec.tags[*].name, var.cluster.resource_tags[*].key))) <= 46
    error_message = "An instance has at most 50 tags, of which 4 identify the Machine: leave some of tags out, so that 46 remain with those of the cluster."
  }

  # What the instance is made with.

  validation {
    condition     = var.provider_spec.cpuOptions == null ? true : var.provider_spec.cpuOptions.confidentialCompute != ""
    error_message = "providerSpec.CPUOptions: Invalid value: \"{}\": At least one field must be set if cpuOptions is provided"
  }

  validation {
    condition = (var.provider_spec.cpuOptions == null ? true :
    contains(["", "Disabled", "AMDEncryptedVirtualizationNestedPaging"], var.provider_spec.cpuOptions.confidentialCompute))
    error_message = "providerSpec.CPUOptions.ConfidentialCompute: Invalid value: ${jsonencode(try(var.provider_spec.cpuOptions.confidentialCompute, null))}: Allowed values are Disabled, AMDEncryptedVirtualizationNestedPaging and omitted"
  }

  validation {
    condition     = contains(["", "Required", "Optional"], var.provider_spec.metadataServiceOptions.authentication)
    error_message = "providerSpec.metadataServiceOptions.authentication: Invalid value: ${jsonencode(var.provider_spec.metadataServiceOptions.authentication)}: Allowed values are either 'Optional' or 'Required'"
  }

  validation {
    condition     = contains(["", "OnDemand", "Spot", "CapacityBlock"], var.provider_spec.marketType)
    error_message = "providerSpec.marketType: Invalid value: ${jsonencode(var.provider_spec.marketType)}: invalid marketType: ${var.provider_spec.marketType} valid values are: OnDemand, Spot, CapacityBlock and omitted"
  }

  validation {
    condition     = var.provider_spec.spotMarketOptions == null ? true : var.provider_spec.marketType != "CapacityBlock"
    error_message = "providerSpec.marketType: Invalid value: \"CapacityBlock\": invalid marketType: marketType set to CapacityBlock and spotMarketOptions cannot be used together"
  }

  validation {
    condition     = var.provider_spec.spotMarketOptions == null ? true : var.provider_spec.marketType != "OnDemand"
    error_message = "providerSpec.marketType: Invalid value: \"OnDemand\": invalid marketType: setting marketType to OnDemand and spotMarketOptions cannot be used together"
  }

  validation {
    condition     = var.provider_spec.spotMarketOptions == null ? true : can(regex("^([0-9]+([.][0-9]+)?)?$", var.provider_spec.spotMarketOptions.maxPrice))
    error_message = "spotMarketOptions.maxPrice is the most to pay for an hour, in US dollars: write it as maxPrice: \"0.05\", or leave it out for the on-demand price."
  }

  validation {
    condition     = can(regex("^(cr-[0-9a-f]{17})?$", var.provider_spec.capacityReservationId))
    error_message = "providerSpec.capacityReservationId: Invalid value: ${jsonencode(var.provider_spec.capacityReservationId)}: invalid value for capacityReservationId: ${jsonencode(var.provider_spec.capacityReservationId)}, it must start with 'cr-' and be exactly 20 characters long with 17 hexadecimal characters"
  }

  validation {
    condition     = var.provider_spec.capacityReservationId == "" ? true : var.provider_spec.marketType != "Spot"
    error_message = "providerSpec.marketType: Invalid value: \"Spot\": invalid marketType: marketType set to Spot and capacityReservationID may not be used together"
  }

  validation {
    condition     = var.provider_spec.capacityReservationId == "" || var.provider_spec.marketType != "" ? true : var.provider_spec.spotMarketOptions == null
    error_message = "providerSpec.capacityReservationId: Invalid value: ${jsonencode(var.provider_spec.capacityReservationId)}: spotMarketOptions and capacityReservationID may not be used together"
  }

  validation {
    condition     = var.provider_spec.marketType == "CapacityBlock" ? var.provider_spec.capacityReservationId != "" : true
    error_message = "providerSpec.marketType: Invalid value: \"CapacityBlock\": capacityReservationID is required when CapacityBlock is provided"
  }

  # Where the instance is.

  validation {
    condition     = contains(["", "default", "dedicated", "host"], var.provider_spec.placement.tenancy)
    error_message = "providerSpec.tenancy: Invalid value: ${jsonencode(var.provider_spec.placement.tenancy)}: Invalid providerSpec.tenancy, the only allowed options are: default, dedicated, host, or omitted"
  }

  validation {
    condition = var.provider_spec.placement.tenancy != "host" ? true : !contains([
      lookup(var.machine.labels, "machine.openshift.io/cluster-api-machine-role", ""),
      lookup(var.machine.labels, "machine.openshift.io/cluster-api-machine-type", ""),
    ], "master")
    error_message = "spec.placement.tenancy: Forbidden: dedicated host tenancy is not supported for control plane machines"
  }

  validation {
    condition     = var.provider_spec.placement.host == null ? true : var.provider_spec.placement.tenancy == "host"
    error_message = "spec.placement.host: Forbidden: host may only be specified when tenancy is 'host'"
  }

  validation {
    condition     = var.provider_spec.placement.host == null ? true : var.provider_spec.placement.host.affinity != ""
    error_message = "spec.placement.host.affinity: Required value: affinity is required and must be set to either AnyAvailable or DedicatedHost"
  }

  validation {
    condition     = var.provider_spec.placement.host == null ? true : contains(["", "AnyAvailable", "DedicatedHost"], var.provider_spec.placement.host.affinity)
    error_message = "spec.placement.host.affinity: Invalid value: ${jsonencode(try(var.provider_spec.placement.host.affinity, null))}: hostAffinity must be either AnyAvailable or DedicatedHost"
  }

  validation {
    condition = (var.provider_spec.placement.host == null ? true :
    var.provider_spec.placement.host.affinity != "DedicatedHost" || var.provider_spec.placement.host.dedicatedHost != null)
    error_message = "spec.placement.host.dedicatedHost: Required value: dedicatedHost is required when hostAffinity is DedicatedHost, and optional otherwise"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost, null) == null ? true :
    contains(["", "UserProvided", "Dynamic"], var.provider_spec.placement.host.dedicatedHost.allocationStrategy))
    error_message = "spec.placement.host.dedicatedHost.allocationStrategy: Invalid value: ${jsonencode(try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, null))}: Invalid allocationStrategy, the only allowed options are: UserProvided, Dynamic"
  }

  validation {
    condition = (!contains(["", "UserProvided"], try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, "none")) ? true :
    var.provider_spec.placement.host.dedicatedHost.id != "")
    error_message = "spec.placement.host.dedicatedHost.id: Required value: id is required when allocationStrategy is UserProvided and must start with 'h-' followed by 8 or 17 lowercase hexadecimal characters (0-9 and a-f)"
  }

  validation {
    condition = (!contains(["", "UserProvided"], try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, "none")) ? true :
    can(regex("^(h-([0-9a-f]{8}|[0-9a-f]{17}))?$", var.provider_spec.placement.host.dedicatedHost.id)))
    error_message = "spec.placement.host.dedicatedHost.id: Invalid value: ${jsonencode(try(var.provider_spec.placement.host.dedicatedHost.id, null))}: id must start with 'h-' followed by 8 or 17 lowercase hexadecimal characters (0-9 and a-f)"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, "") != "Dynamic" ? true :
    var.provider_spec.placement.host.dedicatedHost.id == "")
    error_message = "spec.placement.host.dedicatedHost.id: Forbidden: id is only allowed when allocationStrategy is Provided"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, "") != "Dynamic" ? true :
    var.provider_spec.placement.host.affinity != "AnyAvailable")
    error_message = "spec.placement.host.affinity: Forbidden: hostAffinity must be DedicatedHost when using dynamic host allocation"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation, null) == null ? true :
    !contains(["", "UserProvided"], var.provider_spec.placement.host.dedicatedHost.allocationStrategy))
    error_message = "spec.placement.host.dedicatedHost.dynamicHostAllocation: Invalid value: ${jsonencode(try(var.provider_spec.placement.host.dedicatedHost.id, null))}: dynamicHostAllocation is only allowed when allocationStrategy is Dynamic"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation, null) == null ? true :
    length(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation.tags) >= 1)
    error_message = "spec.placement.host.dedicatedHost.dynamicHostAllocation.tags: Invalid value: 0: at least 1 tag must be specified"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation, null) == null ? true :
    length(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation.tags) <= 50)
    error_message = "spec.placement.host.dedicatedHost.dynamicHostAllocation.tags: Invalid value: ${length(try(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation.tags, []))}: maximum 50 tags can be specified"
  }

  validation {
    condition     = var.provider_spec.placementGroupPartition == null ? true : contains(range(1, 8), var.provider_spec.placementGroupPartition)
    error_message = "providerSpec.placementGroupPartition: Invalid value: ${jsonencode(var.provider_spec.placementGroupPartition)}: providerSpec.placementGroupPartition must be between 1 and 7"
  }

  validation {
    condition     = var.provider_spec.placementGroupPartition == null || var.provider_spec.placementGroupName != ""
    error_message = "providerSpec.placementGroupPartition: Invalid value: ${jsonencode(var.provider_spec.placementGroupPartition)}: providerSpec.placementGroupPartition is set but providerSpec.placementGroupName is empty"
  }

  # How it is reached.

  validation {
    condition     = var.provider_spec.deviceIndex == 0
    error_message = "deviceIndex is 0, as an instance cannot be made without a network interface of that index: leave it out."
  }

  validation {
    condition     = contains(["", "ENA", "EFA"], var.provider_spec.networkInterfaceType)
    error_message = "providerSpec.networkInterfaceType: Invalid value: ${jsonencode(var.provider_spec.networkInterfaceType)}: Valid values are: ENA, EFA and omitted"
  }

  validation {
    condition = (alltrue([for filter in var.provider_spec.subnet.filters : filter.name != "" && length(filter.values) > 0]) &&
    alltrue(flatten([for group in var.provider_spec.securityGroups : [for filter in group.filters : filter.name != "" && length(filter.values) > 0]])))
    error_message = "A filter has a name and values: write it as {name: \"tag:Name\", values: [NAME]}."
  }

  validation {
    condition     = alltrue([for balancer in var.provider_spec.loadBalancers : balancer.name != "" || !contains(["classic", "network"], balancer.type)])
    error_message = "loadBalancers[].name names a load balancer: write it as {name: NAME, type: network}."
  }

  # Its volumes.

  validation {
    condition     = length([for device in var.provider_spec.blockDevices : device if device.ebs != null && device.deviceName == ""]) <= 1
    error_message = "error getting blockDeviceMappings: non root device must have name: only one entry of blockDevices, the root volume, has no deviceName."
  }

  validation {
    condition = (length(distinct([for device in var.provider_spec.blockDevices : device.deviceName if device.ebs != null])) ==
    length([for device in var.provider_spec.blockDevices : device if device.ebs != null]) || length([for device in var.provider_spec.blockDevices : device if device.ebs != null && device.deviceName == ""]) > 1)
    error_message = "blockDevices[].deviceName is each volume's own: give the second another, for example /dev/xvdc."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.blockDevices : contains(["", "gp2", "gp3", "io1", "io2", "sc1", "st1", "standard"], try(device.ebs.volumeType, ""))])
    error_message = "blockDevices[].ebs.volumeType is gp2, gp3, io1, io2, sc1, st1 or standard: write volumeType: gp3."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.volumeSize, null) == null ? true : device.ebs.volumeSize >= 1 && floor(device.ebs.volumeSize) == device.ebs.volumeSize])
    error_message = "blockDevices[].ebs.volumeSize is a whole number of GiB: write volumeSize: 120, or leave it out for what the image has."
  }

  # A volume without a type is of AWS's, and what it says of throughput is ignored.
  validation {
    condition = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.throughputMib, null) == null || contains(["", "gp3"], try(device.ebs.volumeType, ""))])
    error_message = join("; ", [for i, device in var.provider_spec.blockDevices :
      "providerSpec.blockDevices[${i}].ebs.throughputMib: Invalid value: ${jsonencode(device.ebs.throughputMib)}: only valid for gp3 volumes"
    if try(device.ebs.throughputMib, null) != null && !contains(["", "gp3"], try(device.ebs.volumeType, ""))])
  }

  validation {
    condition = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.throughputMib, null) == null || try(device.ebs.volumeType, "") != "gp3" ? true : device.ebs.throughputMib >= 125 && device.ebs.throughputMib <= 2000])
    error_message = join("; ", [for i, device in var.provider_spec.blockDevices :
      "providerSpec.blockDevices[${i}].ebs.throughputMib: Invalid value: ${jsonencode(device.ebs.throughputMib)}: must be a value between 125 and 2000"
    if try(device.ebs.throughputMib, null) == null || try(device.ebs.volumeType, "") != "gp3" ? false : device.ebs.throughputMib < 125 || device.ebs.throughputMib > 2000])
  }
}

variable "recorded" {
  type = object({
    subnet_id          = string
    host_zone          = string
    security_groups    = string
    security_group_ids = list(string)
    load_balancers     = list(string)
    domain_names       = optional(list(string))
  })
  description = "What was found for the instance when it was made or changed; null until it is there."
  default     = null
}

variable "user_data" {
  type        = string
  description = "What the instance reads at its first boot: an Ignition configuration."
  sensitive   = true

  validation {
    condition     = floor(length(replace(base64encode(var.user_data), "=", "")) * 3 / 4) <= 16384
    error_message = "EC2 takes at most 16 KiB of user data: let it point to the rest, as Ignition configurations that the installer writes do."
  }
}
