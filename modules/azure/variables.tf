variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name becomes the virtual machine's name and hostname; its UID and cluster are tags."

  validation {
    condition     = length(var.machine.name) <= 63
    error_message = "The Machine's name becomes the hostname, which has at most 63 characters: give the MachineSet a shorter name."
  }
}

variable "provider_spec" {
  type = object({
    userDataSecret    = optional(object({ name = optional(string, ""), namespace = optional(string, "") }))
    credentialsSecret = optional(object({ name = optional(string, ""), namespace = optional(string, "") }))
    location          = optional(string, "")
    vmSize            = optional(string, "")
    image = optional(object({
      publisher  = optional(string, "")
      offer      = optional(string, "")
      sku        = optional(string, "")
      version    = optional(string, "")
      resourceID = optional(string, "")
      type       = optional(string, "")
    }), {})
    osDisk = optional(object({
      osType = optional(string, "")
      managedDisk = optional(object({
        storageAccountType = optional(string, "")
        diskEncryptionSet  = optional(object({ id = optional(string, "") }), {})
        securityProfile = optional(object({
          diskEncryptionSet      = optional(object({ id = optional(string, "") }), {})
          securityEncryptionType = optional(string, "")
        }), {})
      }), {})
      diskSizeGB   = optional(number, 0)
      diskSettings = optional(object({ ephemeralStorageLocation = optional(string, "") }), {})
      cachingType  = optional(string, "")
    }), {})
    dataDisks = optional(list(object({
      nameSuffix = string
      diskSizeGB = number
      managedDisk = optional(object({
        storageAccountType = optional(string, "")
        diskEncryptionSet  = optional(object({ id = optional(string, "") }), {})
      }), {})
      lun            = optional(number, 0)
      cachingType    = optional(string, "")
      deletionPolicy = optional(string, "")
    })), [])
    sshPublicKey              = optional(string, "")
    publicIP                  = optional(bool, false)
    tags                      = optional(map(string), {})
    securityGroup             = optional(string, "")
    applicationSecurityGroups = optional(list(string), [])
    subnet                    = optional(string, "")
    publicLoadBalancer        = optional(string, "")
    internalLoadBalancer      = optional(string, "")
    natRule                   = optional(number)
    managedIdentity           = optional(string, "")
    vnet                      = optional(string, "")
    zone                      = optional(string, "")
    networkResourceGroup      = optional(string, "")
    resourceGroup             = optional(string, "")
    spotVMOptions             = optional(object({ maxPrice = optional(string, "") }))
    securityProfile = optional(object({
      encryptionAtHost = optional(bool)
      settings = optional(object({
        securityType = optional(string, "")
        confidentialVM = optional(object({
          uefiSettings = optional(object({ secureBoot = optional(string, ""), virtualizedTrustedPlatformModule = optional(string, "") }), {})
        }))
        trustedLaunch = optional(object({
          uefiSettings = optional(object({ secureBoot = optional(string, ""), virtualizedTrustedPlatformModule = optional(string, "") }), {})
        }))
      }), {})
    }), {})
    ultraSSDCapability    = optional(string, "")
    acceleratedNetworking = optional(bool, false)
    availabilitySet       = optional(string, "")
    diagnostics = optional(object({
      boot = optional(object({
        storageAccountType = optional(string, "")
        customerManaged    = optional(object({ storageAccountURI = optional(string, "") }))
      }))
    }), {})
    capacityReservationGroupID = optional(string, "")
  })
  description = "The fields of an AzureMachineProviderSpec; the README explains each."

  validation {
    condition     = var.provider_spec.vmSize != ""
    error_message = "vmSize should be set to one of the supported Azure VM sizes: write it as vmSize: Standard_D4s_V3."
  }

  validation {
    condition     = var.provider_spec.resourceGroup != ""
    error_message = "resourceGroup is where the virtual machine is made: write the cluster's."
  }

  validation {
    condition     = try(var.provider_spec.userDataSecret.name, "") != ""
    error_message = "userDataSecret.name must be provided: write it as userDataSecret: {name: worker-user-data}."
  }

  validation {
    condition     = try(var.provider_spec.credentialsSecret.name, "") != ""
    error_message = "credentialsSecret.name must be provided: write it as credentialsSecret: {name: azure-cloud-credentials}."
  }

  validation {
    condition     = contains(["", var.machine.namespace], try(var.provider_spec.credentialsSecret.namespace, ""))
    error_message = "Secrets are read from the Machine's own namespace: leave credentialsSecret.namespace out, or write that one."
  }

  # The image.

  validation {
    condition     = var.provider_spec.image.resourceID != "" || join("", [var.provider_spec.image.publisher, var.provider_spec.image.offer, var.provider_spec.image.sku, var.provider_spec.image.version]) != ""
    error_message = "an image reference must be provided: write image.resourceID, or image.publisher, image.offer, image.sku and image.version."
  }

  validation {
    condition     = var.provider_spec.image.resourceID == "" || join("", [var.provider_spec.image.publisher, var.provider_spec.image.offer, var.provider_spec.image.sku, var.provider_spec.image.version]) == ""
    error_message = "resourceID is already specified, other fields such as [Offer, Publisher, SKU, Version] should not be set: write image.resourceID alone, or leave it out."
  }

  validation {
    condition = var.provider_spec.image.resourceID != "" || contains([0, 4], length(compact([
      var.provider_spec.image.publisher, var.provider_spec.image.offer, var.provider_spec.image.sku, var.provider_spec.image.version,
    ])))
    error_message = "${join(", ", [for name, value in { Offer = var.provider_spec.image.offer, Publisher = var.provider_spec.image.publisher, SKU = var.provider_spec.image.sku, Version = var.provider_spec.image.version } : name if value == ""])} must be provided: an image of the marketplace has image.offer, image.publisher, image.sku and image.version."
  }

  validation {
    condition     = contains(var.provider_spec.image.resourceID != "" ? ["", "ID"] : ["", "MarketplaceNoPlan", "MarketplaceWithPlan"], var.provider_spec.image.type)
    error_message = "image.type is ID beside resourceID, and MarketplaceNoPlan or MarketplaceWithPlan beside publisher: write that, or leave it out."
  }

  # Disks.

  validation {
    condition     = contains(["", "Linux", "Windows"], var.provider_spec.osDisk.osType)
    error_message = "osDisk.osType is Linux or Windows: write one."
  }

  validation {
    condition     = var.provider_spec.osDisk.osType != "Windows" || length(var.machine.name) <= 15
    error_message = "A hostname of Windows has at most 15 characters: give the MachineSet a name of 9 at most."
  }

  validation {
    condition     = var.provider_spec.osDisk.diskSizeGB > 0 && var.provider_spec.osDisk.diskSizeGB < 32768 && floor(var.provider_spec.osDisk.diskSizeGB) == var.provider_spec.osDisk.diskSizeGB
    error_message = "diskSizeGB must be greater than zero and less than 32768: write it as diskSizeGB: 128."
  }

  validation {
    condition     = contains(["", "None", "ReadOnly", "ReadWrite"], var.provider_spec.osDisk.cachingType)
    error_message = "osDisk.cachingType can be only None, ReadOnly, ReadWrite or omitted: write one, or leave it out for ReadWrite."
  }

  validation {
    condition     = contains(["", "Local"], var.provider_spec.osDisk.diskSettings.ephemeralStorageLocation)
    error_message = "osDisk.diskSettings.ephemeralStorageLocation can either be omitted or set to Local"
  }

  validation {
    condition     = var.provider_spec.osDisk.diskSettings.ephemeralStorageLocation != "Local" || var.provider_spec.osDisk.cachingType == "ReadOnly"
    error_message = "Instances using an ephemeral OS disk support only Readonly caching: write osDisk.cachingType: ReadOnly."
  }

  validation {
    condition     = contains(["", "VMGuestStateOnly", "DiskWithVMGuestState"], var.provider_spec.osDisk.managedDisk.securityProfile.securityEncryptionType)
    error_message = "securityEncryptionType is VMGuestStateOnly or DiskWithVMGuestState: write one, or leave it out."
  }

  validation {
    condition     = var.provider_spec.osDisk.managedDisk.securityProfile.diskEncryptionSet.id == "" || var.provider_spec.osDisk.managedDisk.securityProfile.securityEncryptionType != "VMGuestStateOnly"
    error_message = "osDisk.managedDisk.securityProfile.diskEncryptionSet encrypts the guest's state with the disk: write securityEncryptionType: DiskWithVMGuestState, or leave it out."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : can(regex("^[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$", disk.nameSuffix))])
    error_message = "nameSuffix must be provided, must start and finish with an alphanumeric character and can only contain letters, numbers, underscores, periods or hyphens: write it as nameSuffix: data."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : length("${var.machine.name}_${disk.nameSuffix}") <= 80])
    error_message = "dataDisks[].nameSuffix is too long, the overall disk name must not exceed 80 chars: shorten it."
  }

  validation {
    condition     = length(distinct(var.provider_spec.dataDisks[*].nameSuffix)) == length(var.provider_spec.dataDisks)
    error_message = "each Data Disk must have a unique nameSuffix: give the second another."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : disk.diskSizeGB >= 4 && floor(disk.diskSizeGB) == disk.diskSizeGB])
    error_message = "diskSizeGB must be provided and at least 4GB in size: write it as diskSizeGB: 64."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : contains(range(64), disk.lun)])
    error_message = "dataDisks[].lun must be greater than or equal to 0 and less than 64: write it as lun: 0."
  }

  validation {
    condition     = length(distinct(var.provider_spec.dataDisks[*].lun)) == length(var.provider_spec.dataDisks)
    error_message = "each Data Disk must have a unique lun: give the second another."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : contains(["Delete", "Detach"], disk.deletionPolicy)])
    error_message = "deletionPolicy must be provided and must be either Delete or Detach: write it as deletionPolicy: Delete."
  }

  validation {
    condition = alltrue([for disk in var.provider_spec.dataDisks : disk.deletionPolicy != "Detach" || alltrue([
      contains(["", "Linux"], var.provider_spec.osDisk.osType), var.provider_spec.spotVMOptions == null, contains(["", "Standard_LRS", "StandardSSD_LRS", "Premium_LRS", "UltraSSD_LRS"], disk.managedDisk.storageAccountType),
      disk.managedDisk.diskEncryptionSet.id == "", var.provider_spec.osDisk.managedDisk.diskEncryptionSet.id == "", var.provider_spec.osDisk.diskSettings.ephemeralStorageLocation == "",
      var.provider_spec.capacityReservationGroupID == "", var.provider_spec.securityProfile.encryptionAtHost != true, contains(["", "CustomerManaged"], try(var.provider_spec.diagnostics.boot.storageAccountType, "")),
      !contains(["ConfidentialVM", "TrustedLaunch"], var.provider_spec.securityProfile.settings.securityType),
    ])])
    error_message = "deletionPolicy: Detach is not supported beside Windows, Spot, disk encryption sets, an ephemeral disk, capacity reservations, securityProfile and diagnostics that Azure keeps: write Delete, or leave these out."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : contains(["", "None", "ReadOnly", "ReadWrite"], disk.cachingType)])
    error_message = "dataDisks[].cachingType is None, ReadOnly or ReadWrite: write one, or leave it out for None."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : contains(["", "Standard_LRS", "StandardSSD_LRS", "StandardSSD_ZRS", "Premium_LRS", "Premium_ZRS", "PremiumV2_LRS", "UltraSSD_LRS"], disk.managedDisk.storageAccountType)])
    error_message = "dataDisks[].managedDisk.storageAccountType is one of Azure's, such as Standard_LRS, Premium_LRS or UltraSSD_LRS: write one, or leave it out for Premium_LRS."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : disk.managedDisk.storageAccountType != "UltraSSD_LRS" || contains(["", "None"], disk.cachingType)])
    error_message = "dataDisks[].cachingType must be \"None\" or omitted when storageAccountType is \"UltraSSD_LRS\": leave it out."
  }

  validation {
    condition     = contains(["", "Enabled", "Disabled"], var.provider_spec.ultraSSDCapability)
    error_message = "ultraSSDCapability can be only Enabled, Disabled or omitted: write one, or leave it out to have it with ultra disks."
  }

  validation {
    condition     = var.provider_spec.ultraSSDCapability != "Disabled" || !contains(var.provider_spec.dataDisks[*].managedDisk.storageAccountType, "UltraSSD_LRS")
    error_message = "Ultra disks need the capability: leave ultraSSDCapability out, or dataDisks of type UltraSSD_LRS."
  }

  # Network.

  validation {
    condition     = var.provider_spec.vnet == "" || var.provider_spec.subnet != ""
    error_message = "must provide a subnet when a virtual network is specified: write subnet, or leave vnet out as well for the cluster's."
  }

  validation {
    condition     = var.provider_spec.subnet == "" || var.provider_spec.vnet != ""
    error_message = "must provide a virtual network when supplying subnets: write vnet, or leave subnet out as well for the cluster's."
  }

  validation {
    condition     = var.provider_spec.natRule == null || var.provider_spec.publicLoadBalancer == ""
    error_message = "natRule is not supported, as it counts rules of a load balancer that the provider cannot list: leave it out, and add the rule's pool with publicLoadBalancer."
  }

  validation {
    condition     = !var.provider_spec.publicIP || length("${var.machine.cluster_id}-${var.machine.name}") < 64
    error_message = "machine public IP name is longer than 63 characters: give the MachineSet a shorter name."
  }

  # Placement and security.

  validation {
    condition     = var.provider_spec.zone == "" || var.provider_spec.availabilitySet == "" || var.cluster.cloud_name == "AzureStackCloud"
    error_message = "A virtual machine is in a zone or in an availability set, but on Azure Stack Hub: leave zone or availabilitySet out."
  }

  validation {
    condition     = var.provider_spec.capacityReservationGroupID == "" || can(regex("(?i)^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.Compute/capacityReservationGroups/[^/]+$", var.provider_spec.capacityReservationGroupID))
    error_message = "capacityReservationGroupID is the ID of the group: write it as /subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Microsoft.Compute/capacityReservationGroups/{capacityReservationGroupName}."
  }

  validation {
    condition     = var.provider_spec.spotVMOptions == null ? true : can(regex("^(-1|[0-9]+([.][0-9]+)?[num]?)?$", var.provider_spec.spotVMOptions.maxPrice))
    error_message = "spotVMOptions.maxPrice is the most to pay for an hour, in US dollars: write it as maxPrice: \"0.05\", or leave it out for the price on demand."
  }

  validation {
    condition     = var.provider_spec.securityProfile.settings.securityType != "ConfidentialVM" || var.provider_spec.osDisk.managedDisk.securityProfile.securityEncryptionType != ""
    error_message = "securityEncryptionType should be set when securityType is set to ConfidentialVM: write osDisk: {managedDisk: {securityProfile: {securityEncryptionType: VMGuestStateOnly}}}."
  }

  validation {
    condition     = var.provider_spec.osDisk.managedDisk.securityProfile.securityEncryptionType == "" || var.provider_spec.securityProfile.settings.securityType == "ConfidentialVM"
    error_message = "securityType should be set to ConfidentialVM when securityEncryptionType is defined: write securityProfile: {settings: {securityType: ConfidentialVM}}."
  }

  validation {
    condition     = var.provider_spec.securityProfile.settings.securityType != "TrustedLaunch" || var.provider_spec.securityProfile.settings.trustedLaunch != null
    error_message = "trustedLaunch should be set when securityType is set to TrustedLaunch: write trustedLaunch: {uefiSettings: {secureBoot: Enabled, virtualizedTrustedPlatformModule: Enabled}}."
  }

  validation {
    condition     = var.provider_spec.securityProfile.settings.securityType != "ConfidentialVM" || try(var.provider_spec.securityProfile.settings.confidentialVM.uefiSettings.virtualizedTrustedPlatformModule, "") == "Enabled"
    error_message = "virtualizedTrustedPlatformModule should be enabled when securityType is set to ConfidentialVM: write confidentialVM: {uefiSettings: {virtualizedTrustedPlatformModule: Enabled}}."
  }

  validation {
    condition     = var.provider_spec.osDisk.managedDisk.securityProfile.securityEncryptionType != "DiskWithVMGuestState" || try(var.provider_spec.securityProfile.settings.confidentialVM.uefiSettings.secureBoot, "Enabled") == "Enabled"
    error_message = "secureBoot should be enabled when securityEncryptionType is set to DiskWithVMGuestState: write secureBoot: Enabled."
  }

  validation {
    condition     = var.provider_spec.osDisk.managedDisk.securityProfile.securityEncryptionType == "DiskWithVMGuestState" ? var.provider_spec.securityProfile.encryptionAtHost != true : true
    error_message = "encryptionAtHost cannot be set to true when securityEncryptionType is set to DiskWithVMGuestState: leave it out."
  }

  validation {
    condition = contains(["ConfidentialVM", "TrustedLaunch"], var.provider_spec.securityProfile.settings.securityType) || !contains([
      try(var.provider_spec.securityProfile.settings.trustedLaunch.uefiSettings.secureBoot, ""), try(var.provider_spec.securityProfile.settings.trustedLaunch.uefiSettings.virtualizedTrustedPlatformModule, ""),
    ], "Enabled")
    error_message = "securityType should be set to TrustedLaunch when uefiSettings are enabled: write securityType: TrustedLaunch, or leave trustedLaunch out."
  }

  # The rest.

  validation {
    condition     = var.provider_spec.diagnostics.boot == null ? true : contains(["AzureManaged", "CustomerManaged"], var.provider_spec.diagnostics.boot.storageAccountType)
    error_message = "storageAccountType must be one of: AzureManaged, CustomerManaged: write it as diagnostics: {boot: {storageAccountType: AzureManaged}}."
  }

  validation {
    condition     = try(var.provider_spec.diagnostics.boot.storageAccountType, "") != "AzureManaged" || var.cluster.cloud_name != "AzureStackCloud"
    error_message = "AzureManaged boot diagnostics is not supported on Azure Stack Hub: write CustomerManaged, or leave diagnostics out."
  }

  validation {
    condition     = var.provider_spec.diagnostics.boot == null ? true : (var.provider_spec.diagnostics.boot.storageAccountType == "CustomerManaged") == (try(var.provider_spec.diagnostics.boot.customerManaged.storageAccountURI, "") != "")
    error_message = "diagnostics.boot.customerManaged.storageAccountURI must be provided with CustomerManaged, and only with it: write it, or AzureManaged."
  }

  validation {
    condition     = alltrue([for name, value in var.provider_spec.tags : length(name) <= 512 && length(value) <= 256 && !can(regex("[<>%&?/\\\\]", name))])
    error_message = "tags have names of 512 characters at most without <, >, %, &, \\, ? and /, and values of 256: shorten it."
  }

  validation {
    condition     = length(setunion(keys(var.provider_spec.tags), try(var.cluster.resource_tags[*].key, []))) <= 45
    error_message = "ocp can define upto 5 tags and user can define upto 45 tags, infrstructure.status.resourceTags and Machine.Spec.ProviderSpec.Tags put together: remove some of tags."
  }

  validation {
    condition     = length(distinct([for name in keys(var.provider_spec.tags) : upper(name)])) == length(var.provider_spec.tags)
    error_message = "found duplicate tag keys: names of tags differ in more than the case of letters; remove one."
  }

  validation {
    condition     = var.provider_spec.sshPublicKey == "" || startswith(try(base64decode(var.provider_spec.sshPublicKey), ""), "ssh-")
    error_message = "sshPublicKey is a public key of OpenSSH in base64: write the output of base64 -w0 id_rsa.pub."
  }
}

variable "cluster" {
  type = object({
    installation  = optional(string, "")
    cloud_name    = optional(string)
    ip_family     = optional(string)
    resource_tags = optional(list(object({ key = string, value = string, parent_id = string })))
  })
  description = "What the cluster's Infrastructure says: Azure's cloud, the families of addresses, and tags of all that is made."
  default     = {}
}

variable "recorded" {
  type        = object({ location = string })
  description = "Where the virtual machine was made; null until it is there."
  default     = null
}

variable "user_data" {
  type        = string
  description = "What the virtual machine reads at its first boot: an Ignition configuration."
  sensitive   = true

  validation {
    condition     = floor(length(replace(base64encode(var.user_data), "=", "")) * 3 / 4) <= 65535
    error_message = "Azure takes at most 64 KiB of user data: let it point to the rest, as Ignition configurations that the installer writes do."
  }
}
