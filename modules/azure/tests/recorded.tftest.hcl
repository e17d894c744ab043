mock_provider "azurerm" {
  mock_data "azurerm_client_config" {
    defaults = { subscription_id = "00000000-0000-0000-0000-000000000001" }
  }
  mock_resource "azurerm_linux_virtual_machine" {
    defaults = {
      id                 = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/virtualMachines/demo-x7k2p-worker-eastus1-abcde"
      virtual_machine_id = "5f6d7c8e-0000-0000-0000-000000000002"
    }
  }
  mock_data "azurerm_virtual_machine" {
    defaults = { power_state = "running" }
  }
  mock_resource "azurerm_network_interface" {
    defaults = {
      id                          = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Network/networkInterfaces/nic"
      internal_domain_name_suffix = "abc.bx.internal.cloudapp.net"
      private_ip_addresses        = ["10.0.1.20"]
    }
  }
}

variables {
  machine = {
    name       = "demo-x7k2p-worker-eastus1-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = { "machine.openshift.io/cluster-api-machineset" = "demo-worker" }
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
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "records_the_region_of_its_resource_group" {
  override_data {
    target = data.azurerm_resource_group.cluster
    values = { location = "eastus" }
  }
  override_data {
    target = data.azurerm_resources.availability_sets
    values = { resources = [] }
  }

  assert {
    condition     = output.recorded.location == "eastus"
    error_message = "The region is recorded with the virtual machine."
  }
}

run "asks_for_neither_group_nor_set_once_it_is_there" {
  command = plan

  variables {
    recorded = { location = "westus" }
  }

  assert {
    condition     = length(data.azurerm_resource_group.cluster) == 0 && length(data.azurerm_resources.availability_sets) == 0
    error_message = "The resource group may be gone with the virtual machine."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].location == "westus"
    error_message = "The region is what was recorded."
  }
}
