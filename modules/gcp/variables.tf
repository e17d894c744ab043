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
    # They become parts of URLs.
    condition = alltrue([
      for project in concat([var.provider_spec.projectID], var.provider_spec.networkInterfaces[*].projectID) : project == "" || can(regex("^([a-z0-9.-]{1,253}:)?[a-z0-9-]{1,63}$", project))
    ])
    error_message = "projectID is the ID of a project: write it as projectID: my-project."
  }

  validation {
    condition     = can(regex("^[a-z0-9-]{0,63}$", var.provider_spec.region)) && can(regex("^[a-z0-9-]{0,63}$", var.provider_spec.zone))
    error_message = "region and zone are names that Google Cloud has: write them as region: us-central1 and zone: us-central1-a."
  }

  validation {
    condition     = var.provider_spec.region != ""
    error_message = "region is required: write it as region: us-central1."
  }

  validation {
    condition     = var.provider_spec.zone != "" && startswith(var.provider_spec.zone, var.provider_spec.region)
    error_message = "zone not in configured region (${var.provider_spec.region}): write it as zone: us-central1-a beside region: us-central1."
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
    condition     = length(var.provider_spec.targetPools) == 0
    error_message = "targetPools is not supported, as the provider can only own a pool whole, with all its members: leave it out, and add the instance with gcloud compute target-pools add-instances."
  }

  # Disks.

  validation {
    condition     = length([for disk in var.provider_spec.disks : disk if disk.boot]) == 1
    error_message = "exactly one boot disk is required: write disks: [{boot: true, ...}]."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.disks : disk.sizeGb == 0 || disk.sizeGb >= 16])
    error_message = "disks[].sizeGb must be at least 16GB in size: write it as sizeGb: 128, or leave it out for the image's."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.disks : disk.sizeGb <= 65536 && floor(disk.sizeGb) == disk.sizeGb])
    error_message = "disks[].sizeGb is exceeding maximum GCP disk size limit, must be below 65536, and whole: write it as sizeGb: 128."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.disks : contains(["", "pd-standard", "pd-ssd", "pd-balanced", "hyperdisk-balanced"], disk.type)])
    error_message = "disks[].type is pd-standard, pd-ssd, pd-balanced or hyperdisk-balanced: write type: pd-ssd, or leave it out for pd-standard."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.disks : try(disk.encryptionKey.kmsKey, null) == null ? true : disk.encryptionKey.kmsKey.name != "" && disk.encryptionKey.kmsKey.keyRing != "" && disk.encryptionKey.kmsKey.location != ""])
    error_message = "disks[].encryptionKey.kmsKey has name, keyRing and location: write all three, or leave encryptionKey out."
  }

  # Network and identity.

  validation {
    condition     = alltrue([for interface in var.provider_spec.networkInterfaces : interface.network != ""])
    error_message = "network is required: write the network's name, or leave networkInterfaces out for the cluster's."
  }

  validation {
    condition     = alltrue([for interface in var.provider_spec.networkInterfaces : interface.subnetwork != ""])
    error_message = "subnetwork is required: write the subnetwork's name, or leave networkInterfaces out for the cluster's."
  }

  validation {
    condition     = length(var.provider_spec.serviceAccounts) <= 1 && alltrue([for account in var.provider_spec.serviceAccounts : account.email != "" && length(account.scopes) > 0])
    error_message = "exactly 1 service account must be supplied, with email and scopes: write serviceAccounts: [{email: EMAIL, scopes: [\"https://www.googleapis.com/auth/cloud-platform\"]}]."
  }

  validation {
    condition     = alltrue([for item in var.provider_spec.gcpMetadata : item.key != ""]) && length(distinct(var.provider_spec.gcpMetadata[*].key)) == length(var.provider_spec.gcpMetadata)
    error_message = "gcpMetadata[].key is required, and each key is there once: write {key: serial-port-enable, value: \"true\"}."
  }

  validation {
    condition     = alltrue(flatten([for labels in concat([var.provider_spec.labels], var.provider_spec.disks[*].labels) : [for name, value in labels : can(regex("^[\\p{Ll}\\p{Lo}][-_\\p{Ll}\\p{Lo}\\p{N}]{0,62}$", name)) && can(regex("^[-_\\p{Ll}\\p{Lo}\\p{N}]{0,63}$", value))]]))
    error_message = "labels have small letters, digits, '-' and '_', 63 at most, and names that begin with a letter: write team: platform."
  }

  validation {
    condition     = length(var.provider_spec.resourceManagerTags) <= 50
    error_message = "resourceManagerTags has at most 50 tags: leave some out."
  }

  validation {
    condition     = length(var.provider_spec.resourceManagerTags) > 50 || length(distinct(concat([for tag in var.provider_spec.resourceManagerTags : "${tag.parentID}/${tag.key}"], [for tag in var.cluster.resource_tags : "${tag.parent_id}/${tag.key}"]))) <= 50
    error_message = "maximum of 50 tags can be added to a compute instance, those of the Infrastructure's resourceTags included: leave some out."
  }

  validation {
    condition     = alltrue([for labels in concat([var.provider_spec.labels], var.provider_spec.disks[*].labels) : length(merge(var.cluster.resource_labels, labels)) <= 32])
    error_message = "user can define upto 32 labels, those of the Infrastructure's resourceLabels included: leave some out."
  }

  # How it runs.

  validation {
    condition     = contains(["", "Spot"], var.provider_spec.provisioningModel)
    error_message = "provisioningModel must be \"Spot\" or omit for standard provisioning: write Spot, or leave it out."
  }

  validation {
    condition     = !var.provider_spec.preemptible || var.provider_spec.provisioningModel != "Spot"
    error_message = "preemptible cannot be used together with \"Spot\" provisioning model: leave one out."
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
    error_message = "failed to determine restart policy: preemptible/spot instances cannot be automatically restarted: leave restartPolicy out, or write Never."
  }

  # Graphics processors.

  validation {
    condition     = length(var.provider_spec.gpus) <= 1
    error_message = "More than one type of accelerator provided. Instances support only one accelerator type at a time: leave the others out."
  }

  validation {
    condition     = alltrue([for gpu in var.provider_spec.gpus : gpu.type != ""])
    error_message = "Type is required: write gpus: [{type: nvidia-tesla-t4, count: 1}]."
  }

  validation {
    condition     = alltrue([for gpu in var.provider_spec.gpus : gpu.count >= 0 && floor(gpu.count) == gpu.count])
    error_message = "gpus[].count is a whole number: write {type: nvidia-tesla-t4, count: 1}."
  }

  validation {
    condition     = length(var.provider_spec.gpus) == 0 || !startswith(var.provider_spec.machineType, "a2-")
    error_message = "A2 machine types have already attached gpus, additional gpus cannot be specified: leave gpus out."
  }

  validation {
    condition     = length(var.provider_spec.gpus) == 0 || !startswith(var.provider_spec.machineType, "a3-") || startswith(var.provider_spec.machineType, "a3-ultragpu-")
    error_message = "A2 and A3 Machine types have pre-attached guest accelerators. Adding additional guest accelerators is not supported: leave gpus out."
  }

  validation {
    condition     = length(var.provider_spec.gpus) == 0 || can(regex("^(n1|a2|a3)-", var.provider_spec.machineType))
    error_message = "MachineType ${var.provider_spec.machineType} does not support accelerators. Only A2, A3 and N1 machine type families support guest accelerators: write a machine type of these, or leave gpus out."
  }

  validation {
    condition     = alltrue([for gpu in var.provider_spec.gpus : gpu.type != "nvidia-tesla-a100"])
    error_message = "nvidia-tesla-a100 gpus, are only attached to the A2 machine types: write machineType: a2-highgpu-1g, and leave gpus out."
  }

  validation {
    condition     = alltrue([for gpu in var.provider_spec.gpus : contains(["", "nvidia-tesla-k80", "nvidia-tesla-p100", "nvidia-tesla-v100", "nvidia-tesla-a100", "nvidia-tesla-p4", "nvidia-tesla-t4", "nvidia-a100-80gb", "nvidia-h100-mega-80gb", "nvidia-h100-80gb"], gpu.type)])
    error_message = "Unsupported accelerator type: write nvidia-tesla-t4, nvidia-tesla-p4, nvidia-tesla-v100, nvidia-tesla-p100 or nvidia-tesla-k80."
  }

  # Google moves no instance with graphics processors. What it does by default depends on the instance.
  validation {
    condition     = var.provider_spec.onHostMaintenance != "Migrate" || (length(var.provider_spec.gpus) == 0 && !startswith(var.provider_spec.machineType, "a2-"))
    error_message = "When GPUs are specified or using machineType with pre-attached GPUs(A2 machine family), onHostMaintenance must be set to Terminate."
  }

  # Confidential computing, and how it boots.

  validation {
    condition     = contains(["", "Enabled", "Disabled", "AMDEncryptedVirtualization", "AMDEncryptedVirtualizationNestedPaging", "IntelTrustedDomainExtensions"], var.provider_spec.confidentialCompute)
    error_message = "ConfidentialCompute must be Enabled, Disabled, AMDEncryptedVirtualization, AMDEncryptedVirtualizationNestedPaging, or IntelTrustedDomainExtensions."
  }

  validation {
    condition     = contains(["", "Disabled"], var.provider_spec.confidentialCompute) || var.provider_spec.onHostMaintenance == "Terminate"
    error_message = "ConfidentialCompute ${var.provider_spec.confidentialCompute} requires OnHostMaintenance to be set to Terminate, the current value is: ${var.provider_spec.onHostMaintenance}."
  }

  validation {
    condition     = !contains(["Enabled", "AMDEncryptedVirtualization"], var.provider_spec.confidentialCompute) || contains(["n2d", "c2d", "c3d"], split("-", var.provider_spec.machineType)[0])
    error_message = "ConfidentialCompute ${var.provider_spec.confidentialCompute} requires a machine type in the following series: n2d,c2d,c3d: write machineType: n2d-standard-4."
  }

  validation {
    condition     = var.provider_spec.confidentialCompute != "AMDEncryptedVirtualizationNestedPaging" || startswith(var.provider_spec.machineType, "n2d-")
    error_message = "ConfidentialCompute ${var.provider_spec.confidentialCompute} requires a machine type in the following series: n2d: write machineType: n2d-standard-4."
  }

  validation {
    condition     = var.provider_spec.confidentialCompute != "IntelTrustedDomainExtensions" || startswith(var.provider_spec.machineType, "c3-")
    error_message = "ConfidentialCompute ${var.provider_spec.confidentialCompute} requires a machine type in the following series: c3: write machineType: c3-standard-4."
  }

  validation {
    condition     = contains(["", "Enabled", "Disabled"], var.provider_spec.shieldedInstanceConfig.secureBoot)
    error_message = "secureBoot must be either Enabled or Disabled."
  }

  validation {
    condition     = contains(["", "Enabled", "Disabled"], var.provider_spec.shieldedInstanceConfig.integrityMonitoring)
    error_message = "integrityMonitoring must be either Enabled or Disabled."
  }

  validation {
    condition     = contains(["", "Enabled", "Disabled"], var.provider_spec.shieldedInstanceConfig.virtualizedTrustedPlatformModule)
    error_message = "virtualizedTrustedPlatformModule must be either Enabled or Disabled."
  }

  validation {
    condition     = var.provider_spec.shieldedInstanceConfig.virtualizedTrustedPlatformModule != "Disabled" || var.provider_spec.shieldedInstanceConfig.integrityMonitoring == "Disabled"
    error_message = "integrityMonitoring requires virtualizedTrustedPlatformModule Enabled: write integrityMonitoring: Disabled, or leave the latter out."
  }
}

variable "cluster" {
  type = object({
    installation    = optional(string, "")
    resource_tags   = optional(list(object({ key = string, value = string, parent_id = string })), [])
    resource_labels = optional(map(string), {})
  })
  description = "What the resources of the cluster have in common."
  default     = {}
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
