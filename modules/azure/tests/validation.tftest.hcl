mock_provider "azurerm" {}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  provider_spec = {
    vmSize            = "Standard_D4s_V3"
    credentialsSecret = { name = "c" }
    userDataSecret    = { name = "u" }
    location          = "eastus"
    resourceGroup     = "r"
    osDisk            = { diskSizeGB = 128 }
    image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
  }
  user_data = "{}"
}

run "refuses_an_empty_size" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      vmSize            = ""
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_resource_group" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_user_data" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_credentials" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = {}
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_secret_elsewhere" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c", namespace = "kube-system" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_image" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = {}
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_half_an_image" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { publisher = "p", offer = "o" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_plan_of_an_image_of_ones_own" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i", type = "MarketplaceWithPlan" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_system" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, osType = "Plan9" }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_without_size" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = {}
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_cache" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, cachingType = "Readonly" }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_place_of_a_disk" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, diskSettings = { ephemeralStorageLocation = "Cache" } }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_ephemeral_disk_with_a_cache_for_writing" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, diskSettings = { ephemeralStorageLocation = "Local" } }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_encryption_of_the_guest" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, managedDisk = { securityProfile = { securityEncryptionType = "All" } } }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { securityType = "ConfidentialVM", confidentialVM = { uefiSettings = { virtualizedTrustedPlatformModule = "Enabled" } } } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_key_for_a_guest_whose_state_is_not_encrypted" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, managedDisk = { securityProfile = { securityEncryptionType = "VMGuestStateOnly", diskEncryptionSet = { id = "/des" } } } }
      securityProfile   = { settings = { securityType = "ConfidentialVM", confidentialVM = { uefiSettings = { virtualizedTrustedPlatformModule = "Enabled" } } } }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_name_that_no_disk_has" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "a b", diskSizeGB = 64, lun = 0, deletionPolicy = "Delete" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_disks_of_one_name" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 64, lun = 0, deletionPolicy = "Delete" }, { nameSuffix = "a", diskSizeGB = 64, lun = 1, deletionPolicy = "Delete" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_that_is_too_small" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 3, lun = 0, deletionPolicy = "Delete" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_number_that_no_disk_has" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 64, lun = 64, deletionPolicy = "Delete" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_disks_of_one_number" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 64, lun = 0, deletionPolicy = "Delete" }, { nameSuffix = "b", diskSizeGB = 64, lun = 0, deletionPolicy = "Delete" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_that_should_stay_beside_spot" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      spotVMOptions     = {}
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 64, lun = 0, deletionPolicy = "Detach" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_cache_of_a_disk" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 64, lun = 0, deletionPolicy = "Delete", cachingType = "Write" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_type_of_a_disk" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 64, lun = 0, deletionPolicy = "Delete", managedDisk = { storageAccountType = "Fast" } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_ultra_disk_with_a_cache" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 64, lun = 0, deletionPolicy = "Delete", cachingType = "ReadOnly", managedDisk = { storageAccountType = "UltraSSD_LRS" } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_unknown_capability" {
  command = plan

  variables {
    provider_spec = {
      vmSize             = "Standard_D4s_V3"
      credentialsSecret  = { name = "c" }
      userDataSecret     = { name = "u" }
      location           = "eastus"
      resourceGroup      = "r"
      osDisk             = { diskSizeGB = 128 }
      image              = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      ultraSSDCapability = "On"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_ultra_disk_without_the_capability" {
  command = plan

  variables {
    provider_spec = {
      vmSize             = "Standard_D4s_V3"
      credentialsSecret  = { name = "c" }
      userDataSecret     = { name = "u" }
      location           = "eastus"
      resourceGroup      = "r"
      osDisk             = { diskSizeGB = 128 }
      image              = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      ultraSSDCapability = "Disabled"
      dataDisks          = [{ nameSuffix = "a", diskSizeGB = 64, lun = 0, deletionPolicy = "Delete", managedDisk = { storageAccountType = "UltraSSD_LRS" } }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_subnet_of_no_network" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      subnet            = "s"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_nat_rule" {
  command = plan

  variables {
    provider_spec = {
      vmSize             = "Standard_D4s_V3"
      credentialsSecret  = { name = "c" }
      userDataSecret     = { name = "u" }
      location           = "eastus"
      resourceGroup      = "r"
      osDisk             = { diskSizeGB = 128 }
      image              = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      natRule            = 0
      publicLoadBalancer = "lb"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_zone_beside_an_availability_set" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      zone              = "1"
      availabilitySet   = "a"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_reservation_by_name" {
  command = plan

  variables {
    provider_spec = {
      vmSize                     = "Standard_D4s_V3"
      credentialsSecret          = { name = "c" }
      userDataSecret             = { name = "u" }
      location                   = "eastus"
      resourceGroup              = "r"
      osDisk                     = { diskSizeGB = 128 }
      image                      = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      capacityReservationGroupID = "group"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_price_that_is_none" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      spotVMOptions     = { maxPrice = "0.05 USD" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_confidential_machine_without_encryption" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { securityType = "ConfidentialVM", confidentialVM = { uefiSettings = { virtualizedTrustedPlatformModule = "Enabled" } } } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_settings_without_a_security_type" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { trustedLaunch = { uefiSettings = { secureBoot = "Enabled" } } } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_confidential_machine_without_a_tpm" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, managedDisk = { securityProfile = { securityEncryptionType = "VMGuestStateOnly" } } }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { securityType = "ConfidentialVM", confidentialVM = {} } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_encryption_of_the_guest_without_secure_boot" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, managedDisk = { securityProfile = { securityEncryptionType = "DiskWithVMGuestState" } } }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { securityType = "ConfidentialVM", confidentialVM = { uefiSettings = { virtualizedTrustedPlatformModule = "Enabled" } } } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_encryption_by_host_and_guest" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, managedDisk = { securityProfile = { securityEncryptionType = "DiskWithVMGuestState" } } }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { encryptionAtHost = true, settings = { securityType = "ConfidentialVM", confidentialVM = { uefiSettings = { secureBoot = "Enabled", virtualizedTrustedPlatformModule = "Enabled" } } } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_trusted_launch_without_settings" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { securityType = "TrustedLaunch" } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_unknown_diagnostics" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      diagnostics       = { boot = { storageAccountType = "Managed" } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_diagnostics_to_nowhere" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      diagnostics       = { boot = { storageAccountType = "CustomerManaged" } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_tag_with_a_slash" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      tags              = { "a/b" = "c" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_key_as_it_is" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      sshPublicKey      = "ssh-rsa AAAA"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_name_that_is_too_long_for_a_host" {
  command = plan

  variables {
    machine = {
      name       = "a123456789-123456789-123456789-123456789-123456789-123456789-123"
      namespace  = "openshift-machine-api"
      uid        = ""
      cluster_id = "demo"
      labels     = {}
    }
  }

  expect_failures = [var.machine]
}

run "refuses_more_user_data_than_azure_takes" {
  command = plan

  variables {
    user_data = format("%65536s", "")
  }

  expect_failures = [var.user_data]
}

run "refuses_a_network_without_a_subnet" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      vmSize            = "Standard_D4s_V3"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      vnet              = "v"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_images" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i", publisher = "p", offer = "o", sku = "s", version = "v" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_hostname_that_windows_cannot_have" {
  command = plan

  variables {
    machine = {
      name       = "demo-windows-abcde"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = {}
    }
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, osType = "Windows" }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_whose_end_is_not_said" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 64 }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_disk_whose_name_is_too_long" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      dataDisks         = [{ nameSuffix = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", diskSizeGB = 64, deletionPolicy = "Delete" }]
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_guest_that_is_encrypted_and_not_confidential" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128, managedDisk = { securityProfile = { securityEncryptionType = "VMGuestStateOnly" } } }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_diagnostics_that_stack_hub_lacks" {
  command = plan

  variables {
    cluster = { cloud_name = "AzureStackCloud" }
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      diagnostics       = { boot = { storageAccountType = "AzureManaged" } }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_public_address_of_a_long_name" {
  command = plan

  variables {
    machine = {
      name       = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = {}
    }
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      publicIP          = true
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_too_many_tags" {
  command = plan

  variables {
    cluster = { resource_tags = [{ key = "one-more", value = "x", parent_id = "" }] }
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      tags              = { t0 = "x", t1 = "x", t2 = "x", t3 = "x", t4 = "x", t5 = "x", t6 = "x", t7 = "x", t8 = "x", t9 = "x", t10 = "x", t11 = "x", t12 = "x", t13 = "x", t14 = "x", t15 = "x", t16 = "x", t17 = "x", t18 = "x", t19 = "x", t20 = "x", t21 = "x", t22 = "x", t23 = "x", t24 = "x", t25 = "x", t26 = "x", t27 = "x", t28 = "x", t29 = "x", t30 = "x", t31 = "x", t32 = "x", t33 = "x", t34 = "x", t35 = "x", t36 = "x", t37 = "x", t38 = "x", t39 = "x", t40 = "x", t41 = "x", t42 = "x", t43 = "x", t44 = "x" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_tags_of_one_name" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      tags              = { team = "a", Team = "b" }
    }
  }

  expect_failures = [var.provider_spec]
}
