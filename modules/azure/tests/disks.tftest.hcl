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

run "has_data_disks_from_its_first_boot_on" {
  variables {
    provider_spec = {
      vmSize             = "Standard_D4s_V3"
      credentialsSecret  = { name = "c" }
      userDataSecret     = { name = "u" }
      location           = "eastus"
      resourceGroup      = "r"
      zone               = "1"
      osDisk             = { diskSizeGB = 128, managedDisk = { storageAccountType = "Premium_LRS" } }
      image              = { publisher = "p", offer = "o", sku = "s", version = "1", type = "MarketplaceWithPlan" }
      sshPublicKey       = base64encode("ssh-rsa AAAA user@host\n")
      managedIdentity    = "demo-identity"
      ultraSSDCapability = "Enabled"
      diagnostics        = { boot = { storageAccountType = "CustomerManaged", customerManaged = { storageAccountURI = "https://a.blob.core.windows.net/" } } }
      dataDisks = [
        { nameSuffix = "ultrassd", lun = 0, diskSizeGB = 4, deletionPolicy = "Delete", cachingType = "None", managedDisk = { storageAccountType = "UltraSSD_LRS" } },
        { nameSuffix = "kept", lun = 1, diskSizeGB = 8, deletionPolicy = "Detach", cachingType = "ReadOnly" },
      ]
    }
  }

  assert {
    condition = jsonencode([for disk in azurerm_virtual_machine.this[0].storage_data_disk : [disk.name, disk.create_option, disk.lun, disk.caching, disk.disk_size_gb]]) == jsonencode([
      ["worker-1_ultrassd", "Attach", 0, "None", 4], ["worker-1_kept", "Empty", 1, "ReadOnly", 8],
    ])
    error_message = "Ignition finds the disks."
  }
  assert {
    condition     = keys(azurerm_managed_disk.data) == ["ultrassd"] && length(azurerm_virtual_machine_data_disk_attachment.data) == 0 && azurerm_virtual_machine.this[0].delete_data_disks_on_termination == false && azurerm_virtual_machine.this[0].delete_os_disk_on_termination
    error_message = "The disk that ends with the Machine is its own resource, the other one stays."
  }
  assert {
    condition     = output.outlives == ["disk worker-1_kept (deletionPolicy: Detach)"]
    error_message = "What stays is said."
  }
  assert {
    condition     = azurerm_virtual_machine.this[0].additional_capabilities[0].ultra_ssd_enabled && azurerm_virtual_machine.this[0].zones == tolist(["1"]) && one(azurerm_virtual_machine.this[0].plan).name == "s" && one(azurerm_virtual_machine.this[0].storage_image_reference).sku == "s"
    error_message = "All else is as without disks."
  }
  assert {
    condition     = base64decode(one(azurerm_virtual_machine.this[0].os_profile).custom_data) == "{}" && one(azurerm_virtual_machine.this[0].os_profile_linux_config).ssh_keys[0].key_data == "ssh-rsa AAAA user@host"
    error_message = "Ignition finds the user data, and people find their key."
  }
  assert {
    condition     = azurerm_virtual_machine.this[0].storage_os_disk[0].managed_disk_type == "Premium_LRS" && azurerm_virtual_machine.this[0].boot_diagnostics[0].storage_uri == "https://a.blob.core.windows.net/" && endswith(one(azurerm_virtual_machine.this[0].identity[0].identity_ids), "/demo-identity")
    error_message = "It has its disk, console and identity."
  }
  assert {
    condition     = length(azurerm_linux_virtual_machine.this) + length(azurerm_windows_virtual_machine.this) == 0 && [output.instance_type, output.zone] == ["Standard_D4s_V3", "1"]
    error_message = "It is one virtual machine."
  }
}
