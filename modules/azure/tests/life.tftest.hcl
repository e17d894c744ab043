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

run "answers_the_outputs_of_the_contract" {
  assert {
    condition     = output.provider_id == "azure:///subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/virtualMachines/demo-x7k2p-worker-eastus1-abcde"
    error_message = "The providerID is the id."
  }
  assert {
    condition     = output.vm_id == "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/virtualMachines/demo-x7k2p-worker-eastus1-abcde"
    error_message = "The id of Resource Manager is published as it is."
  }
  assert {
    condition     = [output.instance_id, output.instance_state, output.instance_type, output.region, output.zone] == ["5f6d7c8e-0000-0000-0000-000000000002", "Running", "Standard_D4s_v3", "eastus", "1"]
    error_message = "Id, state, size, region and zone are published."
  }
  assert {
    condition = jsonencode(output.addresses) == jsonencode([
      { type = "InternalIP", address = "10.0.1.20" },
      { type = "Hostname", address = "demo-x7k2p-worker-eastus1-abcde" },
      { type = "InternalDNS", address = "demo-x7k2p-worker-eastus1-abcde" },
      { type = "InternalDNS", address = "demo-x7k2p-worker-eastus1-abcde.abc.bx.internal.cloudapp.net" },
    ])
    error_message = "The addresses are those that certificates of Nodes are approved by."
  }
}

run "refuses_another_size" {
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
      osDisk               = { diskSettings = {}, diskSizeGB = 128, managedDisk = { securityProfile = { diskEncryptionSet = {} }, storageAccountType = "Premium_LRS" }, osType = "Linux" }
      publicIP             = false
      publicLoadBalancer   = "demo-x7k2p"
      resourceGroup        = "demo-x7k2p-rg"
      securityProfile      = { settings = {} }
      subnet               = "demo-x7k2p-worker-subnet"
      userDataSecret       = { name = "worker-user-data" }
      vmSize               = "Standard_D8s_v3"
      vnet                 = "demo-x7k2p-vnet"
      zone                 = "1"
    }
  }

  expect_failures = [terraform_data.made_with]
}

run "leaves_other_user_data_to_later_machines" {
  command = plan

  variables {
    user_data = "{}"
  }

  assert {
    condition     = strcontains(base64decode(nonsensitive(azurerm_linux_virtual_machine.this[0].custom_data)), "3.2.0")
    error_message = "What has booted reads nothing of it."
  }
}

run "is_the_same_without_its_user_data" {
  command = plan

  variables {
    user_data = ""
  }

  assert {
    condition     = strcontains(base64decode(nonsensitive(azurerm_linux_virtual_machine.this[0].custom_data)), "3.2.0")
    error_message = "What has booted reads nothing of it."
  }
}
