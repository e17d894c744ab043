# The engine cannot mock an import, so what is found once is left to tests with a provider.
mock_provider "azurerm" {
  mock_data "azurerm_client_config" {
    defaults = { subscription_id = "00000000-0000-0000-0000-000000000001" }
  }
}

variables {
  machine = {
    name       = "demo-x7k2p-worker-eastus1-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = {}
  }
  # As OpenShift's installer writes it for a worker.
  provider_spec = {
    acceleratedNetworking = true
    credentialsSecret     = { name = "azure-cloud-credentials", namespace = "openshift-machine-api" }
    diagnostics           = {}
    image = {
      offer      = "", publisher = "", sku = "", version = ""
      resourceID = "/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/galleries/gallery_demo_x7k2p/images/demo-x7k2p-gen2/versions/latest"
    }
    location             = "eastus"
    managedIdentity      = "demo-x7k2p-identity"
    networkResourceGroup = "demo-x7k2p-rg"
    osDisk               = { diskSettings = {}, diskSizeGB = 128, managedDisk = { securityProfile = { diskEncryptionSet = {} }, storageAccountType = "Premium_LRS" }, osType = "Linux" }
    publicIP             = false
    publicLoadBalancer   = "demo-x7k2p"
    resourceGroup        = "demo-x7k2p-rg"
    securityProfile      = { settings = {} }
    subnet               = "demo-x7k2p-worker-subnet"
    userDataSecret       = { name = "worker-user-data" }
    vmSize               = "Standard_D4s_v3"
    vnet                 = "demo-x7k2p-vnet"
    zone                 = "1"
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "finds_nothing" {
  command = plan

  override_data {
    target = data.azurerm_resources.machines
    values = { resources = [] }
  }
  override_data {
    target = data.azurerm_resources.network_interfaces
    values = { resources = [] }
  }
}

run "two_machines_stop_it" {
  command = plan

  override_data {
    target = data.azurerm_resources.machines
    values = { resources = [{ id = "/a", name = "a", type = "t", location = "l", tags = {}, resource_group_name = "r" }, { id = "/b", name = "b", type = "t", location = "l", tags = {}, resource_group_name = "r" }] }
  }
  override_data {
    target = data.azurerm_resources.network_interfaces
    values = { resources = [] }
  }

  expect_failures = [data.azurerm_resources.machines]
}

run "two_interfaces_stop_it" {
  command = plan

  override_data {
    target = data.azurerm_resources.machines
    values = { resources = [] }
  }
  override_data {
    target = data.azurerm_resources.network_interfaces
    values = { resources = [{ id = "/a", name = "a", type = "t", location = "l", tags = {}, resource_group_name = "r" }, { id = "/b", name = "b", type = "t", location = "l", tags = {}, resource_group_name = "r" }] }
  }

  expect_failures = [data.azurerm_resources.network_interfaces]
}

run "two_public_addresses_stop_it" {
  command = plan

  override_data {
    target = data.azurerm_resources.public_addresses
    values = { resources = [{ id = "/a", name = "a", type = "t", location = "l", tags = {}, resource_group_name = "r" }, { id = "/b", name = "b", type = "t", location = "l", tags = {}, resource_group_name = "r" }] }
  }

  expect_failures = [data.azurerm_resources.public_addresses]
}

run "a_disk_that_is_not_asked_for_is_left_alone" {
  command = plan

  override_data {
    target = data.azurerm_resources.disks
    values = { resources = [{ id = "/a", name = "demo-x7k2p-worker-eastus1-abcde_data", type = "t", location = "l", tags = {}, resource_group_name = "r" }] }
  }

  assert {
    condition     = local.found_disks == { data = "/a" } && length(azurerm_managed_disk.data) == 0
    error_message = "It is found by the Machine's UID, and named by its suffix."
  }
}
