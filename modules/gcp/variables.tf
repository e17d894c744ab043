variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name becomes the instance's; its UID and cluster are labels."

  validation {
    condition     = length(var.machine.name) <= 63 && !strcontains(var.machine.name, ".")
    error_message = "The Machine's name becomes the instance's, which has at most 63 characters and no dots: give the MachineSet another name."
  }
}

variable "provider_spec" {
  type = object({
    userDataSecret     = optional(object({ name = optional(string, "") }))
    credentialsSecret  = optional(object({ name = optional(string, "") }))
    canIPForward       = optional(bool, false)
    deletionProtection = optional(bool, false)
    disks = optional(list(object({
      autoDelete = optional(bool, false)
      boot       = optional(bool, false)
      sizeGb     = optional(number, 0)
      type       = optional(string, "")
      image      = optional(string, "")
      labels     = optional(map(string), {})
      encryptionKey = optional(object({
        kmsKey = optional(object({
          name      = optional(string, "")
          keyRing   = optional(string, "")
          projectID = optional(string, "")
          location  = optional(string, "")
        }))
        kmsKeyServiceAccount = optional(string, "")
      }))
    })), [])
    labels      = optional(map(string), {})
    gcpMetadata = optional(list(object({ key = string, value = optional(string, "") })), [])
    networkInterfaces = optional(list(object({
      publicIP   = optional(bool, false)
      network    = optional(string, "")
      projectID  = optional(string, "")
      subnetwork = optional(string, "")
    })), [])
    serviceAccounts   = optional(list(object({ email = string, scopes = optional(list(string), []) })), [])
    tags              = optional(list(string), [])
    targetPools       = optional(list(string), [])
    machineType       = optional(string, "")
    region            = optional(string, "")
    zone              = optional(string, "")
    projectID         = optional(string, "")
    gpus              = optional(list(object({ count = optional(number, 1), type = optional(string, "") })), [])
    preemptible       = optional(bool, false)
    provisioningModel = optional(string, "")
    onHostMaintenance = optional(string, "")
    restartPolicy     = optional(string, "")
    shieldedInstanceConfig = optional(object({
      secureBoot                       = optional(string, "")
      virtualizedTrustedPlatformModule = optional(string, "")
      integrityMonitoring              = optional(string, "")
    }), {})
    confidentialCompute = optional(string, "")
    resourceManagerTags = optional(list(object({ parentID = string, key = string, value = string })), [])
  })
  description = "The fields of a GCPMachineProviderSpec; the README explains each."

  validation {
    condition     = var.provider_spec.projectID != ""
    error_message = "projectID is the project: write it as projectID: my-project."
  }

  validation {
    condition     = var.provider_spec.region != ""
    error_message = "region is required: write it as region: us-central1."
  }

  validation {
    condition     = var.provider_spec.zone != "" && startswith(var.provider_spec.zone, var.provider_spec.region)
    error_message = "zone is required, and configured zones are in the configured region: write it as zone: us-central1-a beside region: us-central1."
  }

  validation {
    condition     = var.provider_spec.machineType != ""
    error_message = "machineType should be set to one of the supported GCP machine types: write it as machineType: n1-standard-4."
  }

  validation {
    condition     = try(var.provider_spec.userDataSecret.name, "") != ""
    error_message = "userDataSecret.name must be provided: write it as userDataSecret: {name: worker-user-data}."
  }

  validation {
    condition     = try(var.provider_spec.credentialsSecret.name, "") != ""
    error_message = "credentialsSecret.name must be provided: write it as credentialsSecret: {name: gcp-cloud-credentials}."
  }

  validation {
    condition     = !var.provider_spec.deletionProtection
    error_message = "deletionProtection is not supported, as its Machine could not be deleted: leave it out."
  }

  validation {
    condition     = length(var.provider_spec.targetPools) == 0
    error_message = "targetPools is not supported, as the provider can only own a pool whole: leave it out."
  }

  # Disks.

  validation {
    condition     = length([for disk in var.provider_spec.disks : disk if disk.boot]) == 1
    error_message = "exactly one boot disk is required: write disks: [{boot: true, ...}]."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.disks : disk.sizeGb == 0 ? disk.image != "" : disk.sizeGb >= 16 && disk.sizeGb <= 65536 && floor(disk.sizeGb) == disk.sizeGb])
    error_message = "disks[].sizeGb must be at least 16GB in size, and at most 65536: write it as sizeGb: 128. Only a disk with an image may do without."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.disks : contains(["", "pd-standard", "pd-ssd", "pd-balanced", "hyperdisk-balanced"], disk.type)])
    error_message = "disks[].type is pd-standard, pd-ssd, pd-balanced or hyperdisk-balanced: write type: pd-ssd, or leave it out for pd-standard."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.disks : !disk.boot || disk.image != ""])
    error_message = "disks[].image is required on a boot disk: write projects/PROJECT/global/images/IMAGE."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.disks : disk.boot || disk.autoDelete])
    error_message = "disks[].autoDelete is true on all but the boot disk, as what is made for a Machine ends with it: write autoDelete: true."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.disks : disk.encryptionKey == null ? true : disk.encryptionKey.kmsKey == null ? disk.encryptionKey.kmsKeyServiceAccount == "" : disk.encryptionKey.kmsKey.name != "" && disk.encryptionKey.kmsKey.keyRing != "" && disk.encryptionKey.kmsKey.location != ""])
    error_message = "disks[].encryptionKey.kmsKey has name, keyRing and location: write all three, or leave encryptionKey out."
  }

  # Network and identity.

  validation {
    condition     = alltrue([for interface in var.provider_spec.networkInterfaces : interface.network != "" && interface.subnetwork != ""])
    error_message = "networkInterfaces[] has network and subnetwork: write both, or leave networkInterfaces out for the cluster's."
  }

  validation {
    condition     = length(var.provider_spec.serviceAccounts) <= 1 && alltrue([for account in var.provider_spec.serviceAccounts : account.email != "" && length(account.scopes) > 0])
    error_message = "exactly 1 service account must be supplied, with email and scopes: write serviceAccounts: [{email: EMAIL, scopes: [\"https://www.googleapis.com/auth/cloud-platform\"]}]."
  }

  validation {
    condition     = alltrue([for item in var.provider_spec.gcpMetadata : item.key != "" && item.key != "user-data"])
    error_message = "gcpMetadata[].key is a key other than user-data, which is the user data's: write another."
  }

  validation {
    condition     = alltrue([for name, value in var.provider_spec.labels : can(regex("^[a-z][-_a-z0-9]{0,62}$", name)) && can(regex("^[-_a-z0-9]{0,63}$", value))])
    error_message = "labels have small letters, digits, '-' and '_', 63 at most, and names that begin with a letter: write team: platform."
  }

  validation {
    condition     = length(var.provider_spec.resourceManagerTags) <= 50 && length(distinct([for tag in var.provider_spec.resourceManagerTags : tag.key])) == length(var.provider_spec.resourceManagerTags)
    error_message = "resourceManagerTags has at most 50 tags, and each key once: leave some out."
  }

  # How it runs.

  validation {
    condition     = contains(["", "Spot"], var.provider_spec.provisioningModel)
    error_message = "provisioningModel is Spot, or left out: write Spot."
  }

  validation {
    condition     = !var.provider_spec.preemptible || var.provider_spec.provisioningModel == ""
    error_message = "preemptible cannot be used together with provisioningModel: leave one out."
  }

  validation {
    condition     = contains(["", "Migrate", "Terminate"], var.provider_spec.onHostMaintenance)
    error_message = "onHostMaintenance must be either Migrate or Terminate."
  }

  validation {
    condition     = contains(["", "Always", "Never"], var.provider_spec.restartPolicy)
    error_message = "restartPolicy must be either Never or Always."
  }

  validation {
    condition     = !(var.provider_spec.preemptible || var.provider_spec.provisioningModel == "Spot") || var.provider_spec.restartPolicy != "Always"
    error_message = "restartPolicy cannot be Always with preemptible or Spot instances: leave it out, or write Never."
  }

  validation {
    condition     = length(var.provider_spec.gpus) <= 1
    error_message = "Only one type of accelerator can be specified: leave the others out."
  }

  validation {
    condition     = alltrue([for gpu in var.provider_spec.gpus : gpu.type != "" && gpu.count >= 0 && floor(gpu.count) == gpu.count])
    error_message = "gpus[] has a type, and a whole number as count: write {type: nvidia-tesla-t4, count: 1}."
  }

  validation {
    condition     = length(var.provider_spec.gpus) == 0 || !startswith(var.provider_spec.machineType, "a2-")
    error_message = "A2 machine types have already attached gpus, additional gpus cannot be specified: leave gpus out."
  }

  validation {
    condition     = alltrue([for gpu in var.provider_spec.gpus : gpu.type != "nvidia-tesla-a100"])
    error_message = "nvidia-tesla-a100 gpus, are only attached to the A2 machine types: write machineType: a2-highgpu-1g, and leave gpus out."
  }

  validation {
    condition     = length(var.provider_spec.gpus) == 0 || var.provider_spec.onHostMaintenance == "Terminate"
    error_message = "When GPUs are specified or using machineType with pre-attached GPUs (A2 machine family), onHostMaintenance must be set to Terminate."
  }

  validation {
    condition     = contains(["", "Enabled", "Disabled", "AMDEncryptedVirtualization", "AMDEncryptedVirtualizationNestedPaging", "IntelTrustedDomainExtensions"], var.provider_spec.confidentialCompute)
    error_message = "confidentialCompute must be Enabled, Disabled, AMDEncryptedVirtualization, AMDEncryptedVirtualizationNestedPaging, or IntelTrustedDomainExtensions."
  }

  validation {
    condition     = contains(["", "Disabled"], var.provider_spec.confidentialCompute) || var.provider_spec.onHostMaintenance == "Terminate"
    error_message = "ConfidentialCompute require OnHostMaintenance to be set to Terminate: write onHostMaintenance: Terminate."
  }

  validation {
    condition     = contains(["", "Disabled"], var.provider_spec.confidentialCompute) || contains(lookup({ AMDEncryptedVirtualizationNestedPaging = ["n2d"], IntelTrustedDomainExtensions = ["c3"] }, var.provider_spec.confidentialCompute, ["c2d", "n2d", "c3d"]), split("-", var.provider_spec.machineType)[0])
    error_message = "machineType does not support this confidentialCompute: write a machine type of c2d, n2d or c3d for AMDEncryptedVirtualization, n2d for AMDEncryptedVirtualizationNestedPaging, c3 for IntelTrustedDomainExtensions."
  }

  validation {
    condition     = alltrue([for policy in [var.provider_spec.shieldedInstanceConfig.secureBoot, var.provider_spec.shieldedInstanceConfig.virtualizedTrustedPlatformModule, var.provider_spec.shieldedInstanceConfig.integrityMonitoring] : contains(["", "Enabled", "Disabled"], policy)])
    error_message = "secureBoot, virtualizedTrustedPlatformModule and integrityMonitoring must be either Enabled or Disabled."
  }

  validation {
    condition     = var.provider_spec.shieldedInstanceConfig.virtualizedTrustedPlatformModule != "Disabled" || var.provider_spec.shieldedInstanceConfig.integrityMonitoring == "Disabled"
    error_message = "integrityMonitoring requires virtualizedTrustedPlatformModule: write integrityMonitoring: Disabled, or leave the latter out."
  }
}

variable "user_data" {
  type        = string
  description = "What the instance reads at its first boot: an Ignition configuration."
  sensitive   = true

  validation {
    condition     = floor(length(replace(base64encode(var.user_data), "=", "")) * 3 / 4) <= 262144
    error_message = "Google takes at most 256 KiB of user data: let it point to the rest, as Ignition configurations that the installer writes do."
  }
}
