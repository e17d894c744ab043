# A run that applies has a file of its own, since a state is one Machine's.
mock_provider "azurerm" {
  mock_data "azurerm_client_config" {
    defaults = { subscription_id = "00000000-0000-0000-0000-00000000000A" }
  }
  mock_data "azurerm_virtual_machine" {
    defaults = { power_state = "deallocated" }
  }
  mock_resource "azurerm_linux_virtual_machine" {
    defaults = { id = "/subscriptions/00000000-0000-0000-0000-00000000000A/resourceGroups/r/providers/Microsoft.Compute/virtualMachines/worker-1" }
  }
  mock_resource "azurerm_windows_virtual_machine" {
    defaults = { id = "/subscriptions/00000000-0000-0000-0000-00000000000A/resourceGroups/r/providers/Microsoft.Compute/virtualMachines/worker-1" }
  }
  mock_resource "azurerm_virtual_machine" {
    defaults = { id = "/subscriptions/00000000-0000-0000-0000-00000000000A/resourceGroups/r/providers/Microsoft.Compute/virtualMachines/worker-1" }
  }
  mock_resource "azurerm_network_interface" {
    defaults = {
      id                          = "/subscriptions/1/resourceGroups/r/providers/Microsoft.Network/networkInterfaces/worker-1-nic"
      internal_domain_name_suffix = "abc.bx.internal.cloudapp.net"
      private_ip_addresses        = ["10.0.1.20", "fd00::20"]
    }
  }
  mock_resource "azurerm_public_ip" {
    defaults = { id = "/subscriptions/1/resourceGroups/r/providers/Microsoft.Network/publicIPAddresses/p", ip_address = "203.0.113.7", fqdn = "demo-worker-1.eastus.cloudapp.azure.com" }
  }
  mock_resource "azurerm_managed_disk" {
    defaults = { id = "/subscriptions/1/resourceGroups/r/providers/Microsoft.Compute/disks/d" }
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

run "makes_a_machine_with_windows" {
  variables {
    provider_spec = {
      vmSize            = "Standard_D2s_v3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "windows-user-data", namespace = "openshift-machine-api" }
      location          = "eastus"
      resourceGroup     = "r"
      zone              = "1"
      managedIdentity   = "demo-identity"
      osDisk            = { diskSizeGB = 128, osType = "Windows", managedDisk = { storageAccountType = "Premium_LRS" } }
      image             = { publisher = "MicrosoftWindowsServer", offer = "WindowsServer", sku = "2022-datacenter-smalldisk", version = "latest" }
    }
    user_data = "<powershell>"
  }

  assert {
    condition     = azurerm_windows_virtual_machine.this[0].computer_name == "worker-1" && base64decode(nonsensitive(azurerm_windows_virtual_machine.this[0].custom_data)) == "<powershell>" && azurerm_windows_virtual_machine.this[0].automatic_updates_enabled == false
    error_message = "It has its name and its user data."
  }
  assert {
    condition     = [for content in nonsensitive(azurerm_windows_virtual_machine.this[0].additional_unattend_content) : content.setting] == ["AutoLogon", "FirstLogonCommands"] && strcontains(nonsensitive(azurerm_windows_virtual_machine.this[0].additional_unattend_content)[1].content, "copy C:\\AzureData\\CustomData.bin C:\\init.ps1")
    error_message = "The first logon runs the user data."
  }
  assert {
    condition     = length(azurerm_linux_virtual_machine.this) + length(azurerm_virtual_machine.this) == 0 && output.instance_type == "Standard_D2s_v3" && output.zone == "1"
    error_message = "It is one virtual machine."
  }
}
