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

run "makes_the_worker_that_the_installer_asks_for" {
  command = plan

  assert {
    condition     = [azurerm_linux_virtual_machine.this[0].name, azurerm_linux_virtual_machine.this[0].computer_name, azurerm_linux_virtual_machine.this[0].size, azurerm_linux_virtual_machine.this[0].zone, azurerm_linux_virtual_machine.this[0].location] == ["demo-x7k2p-worker-eastus1-abcde", "demo-x7k2p-worker-eastus1-abcde", "Standard_D4s_v3", "1", "eastus"]
    error_message = "Name, hostname, size, zone and region are those that are asked for."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].source_image_id == "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/galleries/gallery_demo_x7k2p/images/demo-x7k2p-gen2/versions/latest"
    error_message = "The image is in the subscription of the credentials."
  }
  assert {
    condition     = base64decode(nonsensitive(azurerm_linux_virtual_machine.this[0].custom_data)) == "{\"ignition\":{\"version\":\"3.2.0\"}}"
    error_message = "Ignition finds the user data."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].tags == tomap({ "kubernetes.io_cluster.demo-x7k2p" = "owned", "machine-iac.io_machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "It names the Machine and its cluster."
  }
  assert {
    condition     = jsonencode([for disk in azurerm_linux_virtual_machine.this[0].os_disk : [disk.name, disk.disk_size_gb, disk.storage_account_type, disk.caching]]) == jsonencode([["demo-x7k2p-worker-eastus1-abcde_OSDisk", 128, "Premium_LRS", "ReadWrite"]])
    error_message = "It has the disk that is asked for."
  }
  assert {
    condition     = one(azurerm_linux_virtual_machine.this[0].identity[0].identity_ids) == "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/demo-x7k2p-identity"
    error_message = "It has the identity."
  }
  assert {
    condition     = azurerm_network_interface.primary.name == "demo-x7k2p-worker-eastus1-abcde-nic" && azurerm_network_interface.primary.accelerated_networking_enabled
    error_message = "The network interface has the name that the cloud provider is used to."
  }
  assert {
    condition     = azurerm_network_interface.primary.ip_configuration[0].subnet_id == "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Network/virtualNetworks/demo-x7k2p-vnet/subnets/demo-x7k2p-worker-subnet"
    error_message = "It is in the subnet."
  }
  assert {
    condition     = { for name, pool in azurerm_network_interface_backend_address_pool_association.primary : name => pool.backend_address_pool_id } == { demo-x7k2p = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Network/loadBalancers/demo-x7k2p/backendAddressPools/demo-x7k2p" }
    error_message = "The public load balancer sends out for it."
  }
  assert {
    condition     = length(azurerm_public_ip.primary) + length(azurerm_managed_disk.data) + length(azurerm_network_interface_security_group_association.primary) + length(azurerm_linux_virtual_machine.this[0].boot_diagnostics) + length(azurerm_linux_virtual_machine.this[0].additional_capabilities) == 0
    error_message = "Nothing is made that nobody asks for."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].priority == "Regular" && nonsensitive(length(azurerm_linux_virtual_machine.this[0].admin_password)) > 64
    error_message = "It is not a Spot machine, and nobody knows its password."
  }
}

run "makes_the_control_plane_machine_that_the_installer_asks_for" {
  command = plan

  variables {
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
      osDisk               = { diskSettings = {}, diskSizeGB = 1024, cachingType = "ReadOnly", managedDisk = { securityProfile = { diskEncryptionSet = {} }, storageAccountType = "Premium_LRS" }, osType = "Linux" }
      publicIP             = false
      publicLoadBalancer   = "demo-x7k2p"
      internalLoadBalancer = "demo-x7k2p-internal"
      resourceGroup        = "demo-x7k2p-rg"
      securityProfile      = { settings = {} }
      subnet               = "demo-x7k2p-master-subnet"
      userDataSecret       = { name = "master-user-data" }
      vmSize               = "Standard_D8s_v3"
      vnet                 = "demo-x7k2p-vnet"
      zone                 = "1"
    }
  }

  assert {
    condition = { for name, pool in azurerm_network_interface_backend_address_pool_association.primary : name => pool.backend_address_pool_id } == {
      demo-x7k2p          = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Network/loadBalancers/demo-x7k2p/backendAddressPools/demo-x7k2p"
      demo-x7k2p-internal = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Network/loadBalancers/demo-x7k2p-internal/backendAddressPools/demo-x7k2p-internal"
    }
    error_message = "It is behind both load balancers, in the pools of their names."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].os_disk[0].caching == "ReadOnly" && azurerm_linux_virtual_machine.this[0].os_disk[0].disk_size_gb == 1024
    error_message = "Its disk is cached for reading."
  }
}

run "makes_a_machine_of_what_must_be_told" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "demo-x7k2p-rg"
      osDisk            = { diskSizeGB = 128 }
      image             = { resourceID = "/subscriptions/2/resourceGroups/r/providers/Microsoft.Compute/images/i" }
    }
  }

  assert {
    condition     = azurerm_linux_virtual_machine.this[0].size == "Standard_D4s_V3" && azurerm_linux_virtual_machine.this[0].zone == null
    error_message = "The size has a default, and the zone none."
  }
  assert {
    condition     = azurerm_network_interface.primary.ip_configuration[0].subnet_id == "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Network/virtualNetworks/demo-x7k2p-vnet/subnets/demo-x7k2p-worker-subnet"
    error_message = "Network and subnet are the cluster's."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].source_image_id == "/subscriptions/2/resourceGroups/r/providers/Microsoft.Compute/images/i"
    error_message = "An image in another subscription is taken as it is."
  }
  assert {
    condition     = length(azurerm_linux_virtual_machine.this[0].source_image_reference) == 0 && length(azurerm_linux_virtual_machine.this[0].identity) == 0 && length(azurerm_network_interface_backend_address_pool_association.primary) == 0
    error_message = "There is nothing else."
  }
}

run "takes_every_field" {
  command = plan

  expect_failures = [check.disks]

  variables {
    provider_spec = {
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u", namespace = "openshift-machine-api" }
      location          = "westeurope"
      vmSize            = "Standard_DC4ads_v5"
      image             = { publisher = "p", offer = "o", sku = "s", version = "1.2.3", type = "MarketplaceWithPlan" }
      osDisk = {
        osType      = "Linux"
        diskSizeGB  = 200
        cachingType = "None"
        managedDisk = {
          storageAccountType = "StandardSSD_LRS"
          diskEncryptionSet  = { id = "/des" }
        }
      }
      dataDisks = [
        { nameSuffix = "etcd", diskSizeGB = 64, lun = 3, cachingType = "ReadOnly", deletionPolicy = "Delete", managedDisk = { storageAccountType = "Standard_LRS", diskEncryptionSet = { id = "/des2" } } },
        { nameSuffix = "ultra", diskSizeGB = 4, deletionPolicy = "Delete", managedDisk = { storageAccountType = "UltraSSD_LRS" } },
        { nameSuffix = "plain", diskSizeGB = 8, lun = 1, deletionPolicy = "Delete" },
      ]
      sshPublicKey               = base64encode("ssh-rsa AAAA user@host\n")
      publicIP                   = true
      tags                       = { team = "a", "machine-iac.io_machine-uid" = "other" }
      securityGroup              = "nsg"
      applicationSecurityGroups  = ["asg-a", "asg-b"]
      subnet                     = "subnet"
      vnet                       = "vnet"
      networkResourceGroup       = "network-rg"
      resourceGroup              = "demo-x7k2p-rg"
      internalLoadBalancer       = "internal"
      managedIdentity            = "/subscriptions/2/resourceGroups/r/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
      zone                       = "2"
      spotVMOptions              = { maxPrice = "0.5" }
      securityProfile            = { encryptionAtHost = true, settings = { securityType = "TrustedLaunch", trustedLaunch = { uefiSettings = { secureBoot = "Enabled", virtualizedTrustedPlatformModule = "Disabled" } } } }
      acceleratedNetworking      = true
      diagnostics                = { boot = { storageAccountType = "CustomerManaged", customerManaged = { storageAccountURI = "https://a.blob.core.windows.net/" } } }
      capacityReservationGroupID = "/subscriptions/1/resourceGroups/r/providers/Microsoft.Compute/capacityReservationGroups/g"
    }
  }

  assert {
    condition     = jsonencode([for image in azurerm_linux_virtual_machine.this[0].source_image_reference : [image.publisher, image.offer, image.sku, image.version]]) == jsonencode([["p", "o", "s", "1.2.3"]])
    error_message = "The image is of the marketplace."
  }
  assert {
    condition     = jsonencode([for plan in azurerm_linux_virtual_machine.this[0].plan : [plan.publisher, plan.product, plan.name]]) == jsonencode([["p", "o", "s"]])
    error_message = "Its plan is named."
  }
  assert {
    condition     = jsonencode([for disk in azurerm_linux_virtual_machine.this[0].os_disk : [disk.disk_size_gb, disk.caching, disk.storage_account_type, disk.disk_encryption_set_id]]) == jsonencode([[200, "None", "StandardSSD_LRS", "/des"]])
    error_message = "The disk is as it is asked for."
  }
  assert {
    condition     = { for name, disk in azurerm_managed_disk.data : name => [disk.name, disk.disk_size_gb, disk.storage_account_type, disk.zone] } == { etcd = ["demo-x7k2p-worker-eastus1-abcde_etcd", 64, "Standard_LRS", "2"], plain = ["demo-x7k2p-worker-eastus1-abcde_plain", 8, "Premium_LRS", "2"], ultra = ["demo-x7k2p-worker-eastus1-abcde_ultra", 4, "UltraSSD_LRS", "2"] }
    error_message = "Data disks have their names, sizes and types, and are in the zone."
  }
  assert {
    condition     = azurerm_managed_disk.data["etcd"].disk_encryption_set_id == "/des2" && azurerm_managed_disk.data["etcd"].create_option == "Empty"
    error_message = "They are encrypted."
  }
  assert {
    condition     = { for name, disk in azurerm_virtual_machine_data_disk_attachment.data : name => [disk.lun, disk.caching] } == { etcd = [3, "ReadOnly"], plain = [1, "None"], ultra = [0, "None"] }
    error_message = "They are attached where Ignition looks for them."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].additional_capabilities[0].ultra_ssd_enabled
    error_message = "Ultra disks bring the capability along."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].disable_password_authentication && one(azurerm_linux_virtual_machine.this[0].admin_ssh_key).public_key == "ssh-rsa AAAA user@host" && nonsensitive(azurerm_linux_virtual_machine.this[0].admin_password) == null
    error_message = "A key takes the place of the password."
  }
  assert {
    condition     = azurerm_public_ip.primary[0].sku == "Standard" && azurerm_public_ip.primary[0].allocation_method == "Static" && azurerm_public_ip.primary[0].zones == null && azurerm_public_ip.primary[0].name == "demo-x7k2p-demo-x7k2p-worker-eastus1-abcde" && azurerm_public_ip.primary[0].domain_name_label == "demo-x7k2p-demo-x7k2p-worker-eastus1-abcde"
    error_message = "It has a public address, and a name for it."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].tags == tomap({ team = "a", "kubernetes.io_cluster.demo-x7k2p" = "owned", "machine-iac.io_machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" }) && azurerm_network_interface.primary.tags == azurerm_linux_virtual_machine.this[0].tags && azurerm_managed_disk.data["etcd"].tags == azurerm_linux_virtual_machine.this[0].tags && azurerm_public_ip.primary[0].tags == azurerm_linux_virtual_machine.this[0].tags
    error_message = "The tags are on all that is made, and the Machine's own cannot be changed."
  }
  assert {
    condition     = azurerm_network_interface_security_group_association.primary[0].network_security_group_id == "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Network/networkSecurityGroups/nsg"
    error_message = "It is in the security group."
  }
  assert {
    condition     = { for name, group in azurerm_network_interface_application_security_group_association.primary : name => group.application_security_group_id } == { asg-a = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Network/applicationSecurityGroups/asg-a", asg-b = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Network/applicationSecurityGroups/asg-b" }
    error_message = "It is in the application security groups."
  }
  assert {
    condition     = azurerm_network_interface.primary.ip_configuration[0].subnet_id == "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/network-rg/providers/Microsoft.Network/virtualNetworks/vnet/subnets/subnet"
    error_message = "The network is in a resource group of its own."
  }
  assert {
    condition     = keys(azurerm_network_interface_backend_address_pool_association.primary) == ["internal"]
    error_message = "It is behind the internal load balancer."
  }
  assert {
    condition     = one(azurerm_linux_virtual_machine.this[0].identity[0].identity_ids) == "/subscriptions/2/resourceGroups/r/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
    error_message = "An identity by its id is taken as it is."
  }
  assert {
    condition     = [azurerm_linux_virtual_machine.this[0].priority, azurerm_linux_virtual_machine.this[0].eviction_policy] == ["Spot", "Delete"] && azurerm_linux_virtual_machine.this[0].max_bid_price == 0.5
    error_message = "It is a Spot machine, at most at this price."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].encryption_at_host_enabled && azurerm_linux_virtual_machine.this[0].secure_boot_enabled && azurerm_linux_virtual_machine.this[0].vtpm_enabled == false
    error_message = "It boots what is signed, and its host encrypts."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].boot_diagnostics[0].storage_account_uri == "https://a.blob.core.windows.net/"
    error_message = "Its console is kept."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].capacity_reservation_group_id == "/subscriptions/1/resourceGroups/r/providers/Microsoft.Compute/capacityReservationGroups/g"
    error_message = "It uses the reserved capacity."
  }
}

run "makes_a_confidential_machine" {
  command = plan

  variables {
    provider_spec = {
      vmSize             = "Standard_D4s_V3"
      credentialsSecret  = { name = "c" }
      userDataSecret     = { name = "u" }
      location           = "eastus"
      resourceGroup      = "demo-x7k2p-rg"
      osDisk             = { diskSizeGB = 128, managedDisk = { securityProfile = { securityEncryptionType = "DiskWithVMGuestState", diskEncryptionSet = { id = "/des" } } } }
      image              = { resourceID = "/resourceGroups/r/providers/Microsoft.Compute/images/i" }
      securityProfile    = { settings = { securityType = "ConfidentialVM", confidentialVM = { uefiSettings = { secureBoot = "Enabled", virtualizedTrustedPlatformModule = "Enabled" } } } }
      availabilitySet    = "set"
      ultraSSDCapability = "Enabled"
      diagnostics        = { boot = { storageAccountType = "AzureManaged" } }
      spotVMOptions      = {}
    }
  }

  assert {
    condition     = jsonencode([for disk in azurerm_linux_virtual_machine.this[0].os_disk : [disk.security_encryption_type, disk.secure_vm_disk_encryption_set_id]]) == jsonencode([["DiskWithVMGuestState", "/des"]])
    error_message = "The guest's state is encrypted with the disk."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].secure_boot_enabled && azurerm_linux_virtual_machine.this[0].vtpm_enabled
    error_message = "It boots what is signed, and has a TPM."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].availability_set_id == "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/availabilitySets/set"
    error_message = "It is in the availability set."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].additional_capabilities[0].ultra_ssd_enabled
    error_message = "It can have ultra disks."
  }
  assert {
    condition     = length(azurerm_linux_virtual_machine.this[0].boot_diagnostics) == 1 && azurerm_linux_virtual_machine.this[0].boot_diagnostics[0].storage_account_uri == null
    error_message = "Azure keeps its console."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].priority == "Spot" && azurerm_linux_virtual_machine.this[0].max_bid_price == null
    error_message = "It is a Spot machine at any price."
  }
}

run "keeps_the_operating_system_on_the_host" {
  command = plan

  variables {
    provider_spec = {
      vmSize            = "Standard_D4s_V3"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      location          = "eastus"
      resourceGroup     = "demo-x7k2p-rg"
      osDisk            = { diskSizeGB = 30, cachingType = "ReadOnly", diskSettings = { ephemeralStorageLocation = "Local" } }
      image             = { publisher = "p", offer = "o", sku = "s", version = "latest" }
    }
  }

  assert {
    condition     = azurerm_linux_virtual_machine.this[0].os_disk[0].diff_disk_settings[0].option == "Local" && azurerm_linux_virtual_machine.this[0].os_disk[0].caching == "ReadOnly"
    error_message = "The disk is ephemeral."
  }
}
