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
    loadBalancers = optional(list(object({ name = string, type = string })), [])
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
    condition     = length(distinct(var.provider_spec.tags[*].name)) <= 47
    error_message = "An instance has at most 50 tags, of which 3 identify the Machine: leave some of tags out, so that 47 remain."
  }

  # What the instance is made with.

  validation {
    condition     = var.provider_spec.cpuOptions == null ? true : var.provider_spec.cpuOptions.confidentialCompute != ""
    error_message = "providerSpec.CPUOptions: Invalid value: \"{}\": At least one field must be set if cpuOptions is provided"
  }

  validation {
    condition = (var.provider_spec.cpuOptions == null ? true :
    contains(["", "Disabled", "AMDEncryptedVirtualizationNestedPaging"], var.provider_spec.cpuOptions.confidentialCompute))
    error_message = "providerSpec.cpuOptions.confidentialCompute: Invalid value: ${jsonencode(try(var.provider_spec.cpuOptions.confidentialCompute, null))}: Allowed values are 'Disabled', 'AMDEncryptedVirtualizationNestedPaging' and omitted"
  }

  validation {
    condition     = contains(["", "Required", "Optional"], var.provider_spec.metadataServiceOptions.authentication)
    error_message = "providerSpec.metadataServiceOptions.authentication: Invalid value: ${jsonencode(var.provider_spec.metadataServiceOptions.authentication)}: Allowed values are either 'Optional' or 'Required'"
  }

  validation {
    condition     = contains(["", "OnDemand", "Spot", "CapacityBlock"], var.provider_spec.marketType)
    error_message = "providerSpec.marketType: Invalid value: ${jsonencode(var.provider_spec.marketType)}: Allowed values are 'OnDemand', 'Spot', 'CapacityBlock' and omitted"
  }

  validation {
    condition     = var.provider_spec.spotMarketOptions == null ? true : !contains(["OnDemand", "CapacityBlock"], var.provider_spec.marketType)
    error_message = "spotMarketOptions asks for a Spot instance: leave it out, or write marketType: Spot."
  }

  validation {
    condition     = var.provider_spec.spotMarketOptions == null ? true : can(regex("^([0-9]+([.][0-9]+)?)?$", var.provider_spec.spotMarketOptions.maxPrice))
    error_message = "spotMarketOptions.maxPrice is the most to pay for an hour, in US dollars: write it as maxPrice: \"0.05\", or leave it out for the on-demand price."
  }

  validation {
    condition     = can(regex("^(cr-[0-9a-f]{17})?$", var.provider_spec.capacityReservationId))
    error_message = "providerSpec.capacityReservationId: Invalid value: ${jsonencode(var.provider_spec.capacityReservationId)}: it must start with 'cr-' and be exactly 20 characters long with 17 hexadecimal characters"
  }

  validation {
    condition     = var.provider_spec.capacityReservationId == "" ? true : var.provider_spec.marketType != "Spot" && var.provider_spec.spotMarketOptions == null
    error_message = "A Spot instance cannot use a capacity reservation: leave out capacityReservationId, or spotMarketOptions and marketType: Spot."
  }

  validation {
    condition     = var.provider_spec.marketType == "CapacityBlock" ? var.provider_spec.capacityReservationId != "" : true
    error_message = "capacityReservationId is required when marketType is CapacityBlock: name the reservation of the capacity block."
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
    error_message = "placement.tenancy: host is not for machines of the control plane: leave it out."
  }

  validation {
    condition     = var.provider_spec.placement.host == null ? true : var.provider_spec.placement.tenancy == "host"
    error_message = "host may only be specified when tenancy is host"
  }

  validation {
    condition     = var.provider_spec.placement.host == null ? true : contains(["AnyAvailable", "DedicatedHost"], var.provider_spec.placement.host.affinity)
    error_message = "placement.host.affinity is required, and AnyAvailable or DedicatedHost: write affinity: AnyAvailable."
  }

  validation {
    condition = (var.provider_spec.placement.host == null ? true :
    var.provider_spec.placement.host.affinity != "DedicatedHost" || var.provider_spec.placement.host.dedicatedHost != null)
    error_message = "dedicatedHost is required when affinity is DedicatedHost, and optional otherwise"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost, null) == null ? true :
    contains(["UserProvided", "Dynamic"], var.provider_spec.placement.host.dedicatedHost.allocationStrategy))
    error_message = "placement.host.dedicatedHost.allocationStrategy is UserProvided or Dynamic: write one, or leave it out for UserProvided."
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, "") != "UserProvided" ? true :
    can(regex("^h-([0-9a-f]{8}|[0-9a-f]{17})$", var.provider_spec.placement.host.dedicatedHost.id)))
    error_message = "id must start with 'h-' followed by either 8 or 17 lowercase hexadecimal characters (0-9 and a-f)"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, "") != "Dynamic" ? true :
    var.provider_spec.placement.host.dedicatedHost.id == "")
    error_message = "id is required when allocationStrategy is UserProvided, and forbidden otherwise"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, "") != "Dynamic" ? true :
    var.provider_spec.placement.host.affinity != "AnyAvailable")
    error_message = "allocationStrategy: Dynamic makes a host for this instance alone: write affinity: DedicatedHost."
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.allocationStrategy, "") != "Dynamic" ? true :
    var.provider_spec.placement.availabilityZone != "")
    error_message = "allocationStrategy: Dynamic makes a host in placement.availabilityZone: write it."
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation, null) == null ? true :
    var.provider_spec.placement.host.dedicatedHost.allocationStrategy != "UserProvided")
    error_message = "dynamicHostAllocation is only allowed when allocationStrategy is Dynamic"
  }

  validation {
    condition = (try(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation, null) == null ? true :
      length(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation.tags) >= 1 &&
    length(var.provider_spec.placement.host.dedicatedHost.dynamicHostAllocation.tags) <= 50)
    error_message = "placement.host.dedicatedHost.dynamicHostAllocation.tags has 1 to 50 tags: write one, or leave dynamicHostAllocation out."
  }

  validation {
    condition     = var.provider_spec.placementGroupName == "" || var.provider_spec.placement.host == null
    error_message = "placementGroupName has no effect on a dedicated host: leave it or placement.host out."
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
    condition     = alltrue([for group in var.provider_spec.securityGroups : group.id != "" || length(group.filters) > 0])
    error_message = "A security group is named by id, or found by filters: write one of them."
  }

  validation {
    condition = (alltrue([for filter in var.provider_spec.subnet.filters : filter.name != "" && length(filter.values) > 0]) &&
    alltrue(flatten([for group in var.provider_spec.securityGroups : [for filter in group.filters : filter.name != "" && length(filter.values) > 0]])))
    error_message = "A filter has a name and values: write it as {name: \"tag:Name\", values: [NAME]}."
  }

  validation {
    condition     = alltrue([for balancer in var.provider_spec.loadBalancers : balancer.name != "" && contains(["classic", "network"], balancer.type)])
    error_message = "loadBalancers[] names a load balancer, and type is classic or network: write it as {name: NAME, type: network}."
  }

  # Its volumes.

  validation {
    condition     = alltrue([for device in var.provider_spec.blockDevices : device.noDevice == null && device.virtualName == null])
    error_message = "blockDevices[].noDevice and blockDevices[].virtualName are not supported: leave them out, and describe volumes with ebs."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.blockDevices : device.ebs != null || device.noDevice != null || device.virtualName != null])
    error_message = "blockDevices[] without ebs makes nothing: write ebs: {volumeSize: 120}, or leave the entry out."
  }

  validation {
    condition     = length([for device in var.provider_spec.blockDevices : device if contains(["", "/dev/xvda", "/dev/sda1"], device.deviceName)]) <= 1
    error_message = "One entry of blockDevices is the root volume, which has no deviceName, or /dev/xvda or /dev/sda1: give the others another."
  }

  validation {
    condition     = length(distinct(compact(var.provider_spec.blockDevices[*].deviceName))) == length(compact(var.provider_spec.blockDevices[*].deviceName))
    error_message = "blockDevices[].deviceName is each volume's own: give the second another, for example /dev/xvdc."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.deleteOnTermination, true)])
    error_message = "blockDevices[].ebs.deleteOnTermination has no effect, as volumes are deleted with the instance: leave it out."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.blockDevices : contains(["", "gp2", "gp3", "io1", "io2", "sc1", "st1", "standard"], try(device.ebs.volumeType, ""))])
    error_message = "blockDevices[].ebs.volumeType is gp2, gp3, io1, io2, sc1, st1 or standard: write volumeType: gp3."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.volumeSize, null) == null ? true : device.ebs.volumeSize >= 1 && floor(device.ebs.volumeSize) == device.ebs.volumeSize])
    error_message = "blockDevices[].ebs.volumeSize is a whole number of GiB: write volumeSize: 120, or leave it out for what the image has."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.iops, 0) == 0 || contains(["io1", "io2", "gp3"], try(device.ebs.volumeType, ""))])
    error_message = "blockDevices[].ebs.iops has an effect on volumes of type io1, io2 and gp3 only: leave it out, or write one of these."
  }

  validation {
    condition = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.throughputMib, null) == null || try(device.ebs.volumeType, "") == "gp3"])
    error_message = join("; ", [for i, device in var.provider_spec.blockDevices :
      "providerSpec.blockDevices[${i}].ebs.throughputMib: Invalid value: ${jsonencode(device.ebs.throughputMib)}: only valid for gp3 volumes"
    if try(device.ebs.throughputMib, null) != null && try(device.ebs.volumeType, "") != "gp3"])
  }

  validation {
    condition = alltrue([for device in var.provider_spec.blockDevices : try(device.ebs.throughputMib, null) == null ? true : device.ebs.throughputMib >= 125 && device.ebs.throughputMib <= 2000])
    error_message = join("; ", [for i, device in var.provider_spec.blockDevices :
      "providerSpec.blockDevices[${i}].ebs.throughputMib: Invalid value: ${jsonencode(device.ebs.throughputMib)}: must be a value between 125 and 2000"
    if try(device.ebs.throughputMib, null) == null ? false : device.ebs.throughputMib < 125 || device.ebs.throughputMib > 2000])
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.blockDevices : device.ebs == null ? true : length(device.ebs.kmsKey.filters) == 0 && (device.ebs.kmsKey.id == "" || device.ebs.kmsKey.arn == "")])
    error_message = "A key is named by blockDevices[].ebs.kmsKey.id or by its arn, not by both; filters are not supported."
  }
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
