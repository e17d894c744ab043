# What OpenShift's controller requests, case by case.
mock_provider "azurerm" {
  mock_data "azurerm_client_config" {
    defaults = { subscription_id = "00000000-0000-0000-0000-00000000000A" }
  }
  mock_data "azurerm_virtual_machine" {
    defaults = { power_state = "deallocated" }
  }
}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = { "machine.openshift.io/cluster-api-machineset" = "demo-worker" }
  }
  provider_spec = {
    vmSize            = "Standard_D4s_V3"
    credentialsSecret = { name = "c" }
    userDataSecret    = { name = "u" }
    location          = "eastus"
    resourceGroup     = "r"
    zone              = "1"
    osDisk            = { diskSizeGB = 128 }
    image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
  }
  user_data = "{}"
}

run "is_deleted_when_it_is_evicted" {
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
      # What a client of Kubernetes makes of 0.05.
      spotVMOptions = { maxPrice = "50m" }
    }
  }

  assert {
    condition     = [azurerm_linux_virtual_machine.this[0].priority, azurerm_linux_virtual_machine.this[0].eviction_policy] == ["Spot", "Delete"] && azurerm_linux_virtual_machine.this[0].max_bid_price == 0.05 && output.interruptible
    error_message = "Azure may take it away, and deletes it then."
  }
}

run "has_the_clusters_tags" {
  command = plan

  variables {
    cluster = { resource_tags = [{ key = "team", value = "a", parent_id = "" }, { key = "cost", value = "b", parent_id = "" }] }
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      zone              = "1"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      tags              = { team = "c" }
    }
  }

  assert {
    condition     = azurerm_linux_virtual_machine.this[0].tags == tomap({ team = "c", cost = "b", "kubernetes.io_cluster.demo" = "owned", "machine-iac.io_machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "The providerSpec's tags win over the Infrastructure's."
  }
}

run "has_addresses_of_both_families" {
  command = plan

  variables {
    cluster = { ip_family = "DualStackIPv4Primary" }
    provider_spec = {
      vmSize             = "Standard_D4s_V3"
      credentialsSecret  = { name = "c" }
      userDataSecret     = { name = "u" }
      location           = "eastus"
      resourceGroup      = "r"
      zone               = "1"
      osDisk             = { diskSizeGB = 128 }
      image              = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      publicLoadBalancer = "demo"
    }
  }

  assert {
    condition     = jsonencode([for one in azurerm_network_interface.primary.ip_configuration : [one.name, one.private_ip_address_version, one.subnet_id]]) == jsonencode([["pipConfig", null, local.subnet_id], ["pipConfig-v6", "IPv6", local.subnet_id]])
    error_message = "It has an address of IPv6."
  }
  assert {
    condition     = { for pool in azurerm_network_interface_backend_address_pool_association.primary : basename(pool.backend_address_pool_id) => pool.ip_configuration_name } == { demo = "pipConfig", demo-v6 = "pipConfig-v6" }
    error_message = "Each address has a pool of its own."
  }
}

run "is_in_the_resource_groups_region" {
  command = plan

  override_data {
    target = data.azurerm_resource_group.cluster
    values = { location = "westeurope" }
  }

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      resourceGroup     = "r"
      zone              = "1"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  assert {
    condition     = azurerm_linux_virtual_machine.this[0].location == "westeurope" && azurerm_network_interface.primary.location == "westeurope"
    error_message = "Without a location it is where the cluster is."
  }
}

run "is_in_the_availability_set_of_its_machine_set" {
  command = plan

  override_data {
    target = data.azurerm_resources.availability_sets
    values = { resources = [{ id = "/subscriptions/1/resourceGroups/R/providers/Microsoft.Compute/availabilitySets/demo-worker-as", name = "demo-worker-as", type = "t", location = "l", tags = {}, resource_group_name = "R" }] }
  }

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "northcentralus"
      resourceGroup     = "r"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  assert {
    condition     = data.azurerm_resources.availability_sets[0].name == "demo-worker-as" && azurerm_linux_virtual_machine.this[0].availability_set_id == "/subscriptions/1/resourceGroups/R/providers/Microsoft.Compute/availabilitySets/demo-worker-as"
    error_message = "In a region without zones OpenShift's controller has made a set."
  }
}

run "is_in_no_set_where_there_is_none" {
  command = plan

  variables {
    machine = {
      name       = "worker-1"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = { "machine.openshift.io/cluster-api-machineset" = "workers" }
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
  }

  assert {
    condition     = data.azurerm_resources.availability_sets[0].name == "demo_workers-as" && azurerm_linux_virtual_machine.this[0].availability_set_id == null
    error_message = "It makes none: a set is not one Machine's."
  }
}

run "uses_the_set_beside_a_zone_on_stack_hub" {
  command = plan

  variables {
    cluster = { cloud_name = "AzureStackCloud" }
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "local"
      resourceGroup     = "r"
      zone              = "1"
      availabilitySet   = "demo-cluster"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [check.placement]

  assert {
    condition     = endswith(azurerm_linux_virtual_machine.this[0].availability_set_id, "/availabilitySets/demo-cluster") && azurerm_linux_virtual_machine.this[0].zone == null
    error_message = "The provider takes one of both."
  }
}

run "attaches_disks_later_where_it_must" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      zone              = "1"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { encryptionAtHost = true }
      dataDisks         = [{ nameSuffix = "a", diskSizeGB = 4, deletionPolicy = "Delete" }]
    }
  }

  expect_failures = [check.disks]

  assert {
    condition     = length(azurerm_linux_virtual_machine.this) == 1 && keys(azurerm_virtual_machine_data_disk_attachment.data) == ["a"]
    error_message = "Nothing that is asked for is left out."
  }
}

run "ignores_what_the_controller_ignores" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u", namespace = "elsewhere" }
      location          = "eastus"
      resourceGroup     = "r"
      zone              = "1"
      natRule           = 0
      osDisk            = { diskSizeGB = 128, managedDisk = { securityProfile = { diskEncryptionSet = { id = "/des" } } } }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  expect_failures = [check.network, check.security, check.secrets]

  assert {
    condition     = azurerm_linux_virtual_machine.this[0].secure_boot_enabled == null && azurerm_linux_virtual_machine.this[0].os_disk[0].secure_vm_disk_encryption_set_id == null
    error_message = "It is a virtual machine as any other."
  }
}

run "ignores_an_unknown_security_type" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      zone              = "1"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { securityType = "Standard" } }
    }
  }

  expect_failures = [check.security]

  assert {
    condition     = azurerm_linux_virtual_machine.this[0].secure_boot_enabled == null && azurerm_linux_virtual_machine.this[0].vtpm_enabled == null
    error_message = "It is a virtual machine as any other."
  }
}

run "ignores_settings_without_their_type" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      zone              = "1"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { confidentialVM = {} } }
    }
  }

  expect_failures = [check.security]

  assert {
    condition     = azurerm_linux_virtual_machine.this[0].secure_boot_enabled == null && azurerm_linux_virtual_machine.this[0].vtpm_enabled == null
    error_message = "It is a virtual machine as any other."
  }
}

run "takes_an_unknown_policy_for_none" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      zone              = "1"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { securityType = "TrustedLaunch", trustedLaunch = { uefiSettings = { secureBoot = "Enabled", virtualizedTrustedPlatformModule = "On" } } } }
    }
  }

  expect_failures = [check.security]

  assert {
    condition     = azurerm_linux_virtual_machine.this[0].secure_boot_enabled && azurerm_linux_virtual_machine.this[0].vtpm_enabled == false
    error_message = "What is not Enabled is off."
  }
}

run "launches_nothing_trusted_without_settings" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "r"
      zone              = "1"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile   = { settings = { securityType = "TrustedLaunch", trustedLaunch = {} } }
    }
  }

  expect_failures = [check.security]

  assert {
    condition     = azurerm_linux_virtual_machine.this[0].secure_boot_enabled == null && azurerm_linux_virtual_machine.this[0].vtpm_enabled == null
    error_message = "It is a virtual machine as any other."
  }
}

run "warns_of_spot_outside_of_the_public_cloud" {
  command = plan

  variables {
    cluster = { cloud_name = "AzureUSGovernmentCloud" }
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "usgovvirginia"
      resourceGroup     = "r"
      zone              = "1"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      spotVMOptions     = {}
    }
  }

  expect_failures = [check.placement]
}
