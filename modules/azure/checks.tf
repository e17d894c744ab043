# What is taken and does less than it says. OpenShift's controller takes it too, and is silent.
check "network" {
  assert {
    condition     = var.provider_spec.natRule == null || var.provider_spec.publicLoadBalancer != ""
    error_message = "providerSpec.natRule: it says nothing without publicLoadBalancer."
  }
}

check "placement" {
  assert {
    condition     = var.cluster.cloud_name != "AzureStackCloud"
    error_message = "The cluster is on Azure Stack Hub, for which terraform-provider-azurerm is not made: it may request versions of the API that are not there. providerSpec.zone says nothing beside availabilitySet."
  }

  assert {
    condition     = var.provider_spec.spotVMOptions == null || contains(["", "AzurePublicCloud"], try(coalesce(var.cluster.cloud_name), ""))
    error_message = "spot VMs may not be supported when using GovCloud region"
  }
}

check "security" {
  assert {
    condition     = contains(["", "ConfidentialVM", "TrustedLaunch"], var.provider_spec.securityProfile.settings.securityType)
    error_message = "providerSpec.securityProfile.settings.securityType: ConfidentialVM and TrustedLaunch are known, and any other says nothing."
  }

  assert {
    condition = var.provider_spec.securityProfile.settings.securityType != "TrustedLaunch" || contains([
      try(var.provider_spec.securityProfile.settings.trustedLaunch.uefiSettings.secureBoot, ""), try(var.provider_spec.securityProfile.settings.trustedLaunch.uefiSettings.virtualizedTrustedPlatformModule, ""),
    ], "Enabled")
    error_message = "providerSpec.securityProfile.settings.trustedLaunch: neither secureBoot nor virtualizedTrustedPlatformModule is Enabled, so that nothing is launched trusted."
  }

  assert {
    condition     = var.provider_spec.securityProfile.settings.confidentialVM == null || var.provider_spec.securityProfile.settings.securityType == "ConfidentialVM"
    error_message = "providerSpec.securityProfile.settings.confidentialVM: it says nothing without securityType: ConfidentialVM."
  }

  assert {
    condition = alltrue([for settings in [var.provider_spec.securityProfile.settings.confidentialVM, var.provider_spec.securityProfile.settings.trustedLaunch] :
      alltrue([for policy in [try(settings.uefiSettings.secureBoot, ""), try(settings.uefiSettings.virtualizedTrustedPlatformModule, "")] : contains(["", "Enabled", "Disabled"], policy)])
    ])
    error_message = "providerSpec.securityProfile.settings: secureBoot and virtualizedTrustedPlatformModule are Enabled or Disabled, and anything else is Disabled."
  }

  assert {
    condition     = var.provider_spec.osDisk.managedDisk.securityProfile.diskEncryptionSet.id == "" || var.provider_spec.osDisk.managedDisk.securityProfile.securityEncryptionType != ""
    error_message = "providerSpec.osDisk.managedDisk.securityProfile.diskEncryptionSet: it says nothing without securityEncryptionType."
  }
}

check "disks" {
  assert {
    condition = length(var.provider_spec.dataDisks) == 0 || alltrue([
      contains(["", "Linux"], var.provider_spec.osDisk.osType), var.provider_spec.spotVMOptions == null, var.provider_spec.osDisk.managedDisk.diskEncryptionSet.id == "",
      var.provider_spec.osDisk.diskSettings.ephemeralStorageLocation == "", var.provider_spec.capacityReservationGroupID == "", var.provider_spec.securityProfile.encryptionAtHost != true,
      contains(["", "CustomerManaged"], try(var.provider_spec.diagnostics.boot.storageAccountType, "")), !contains(["ConfidentialVM", "TrustedLaunch"], var.provider_spec.securityProfile.settings.securityType),
    ])
    error_message = "providerSpec.dataDisks: they are attached when the virtual machine boots already, since Windows, Spot, a disk encryption set of the osDisk, an ephemeral disk, a capacity reservation, securityProfile or diagnostics that Azure keeps is asked for. An Ignition configuration that formats them fails."
  }
}

check "secrets" {
  assert {
    condition     = contains(["", var.machine.namespace], try(var.provider_spec.userDataSecret.namespace, ""))
    error_message = "providerSpec.userDataSecret.namespace: it says nothing, the Secret is read from the Machine's own namespace."
  }
}
