# Runs with the files of adopt/ beside the module's. The engine cannot mock an import, so this is what is refused.
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
  adopt = {
    provider_id = "azure:///subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/virtualMachines/demo-x7k2p-worker-eastus1-abcde"
    id          = ""
  }
}

run "no_machine_is_not_adopted" {
  command = plan

  override_data {
    target = data.azurerm_resources.adopted
    values = { resources = [] }
  }

  expect_failures = [data.azurerm_resources.adopted]
}

run "another_cluster_s_machine_is_not_adopted" {
  command = plan

  override_data {
    target = data.azurerm_resources.adopted
    values = { resources = [{ id = "/a", name = "demo-x7k2p-worker-eastus1-abcde", type = "t", location = "eastus", tags = { "kubernetes.io_cluster.other" = "owned" }, resource_group_name = "demo-x7k2p-rg" }] }
  }

  expect_failures = [data.azurerm_resources.adopted]
}

run "a_machine_of_another_name_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = "azure:///subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/virtualMachines/other"
      id          = ""
    }
  }


  expect_failures = [data.azurerm_resources.adopted]
}

run "a_machine_of_another_subscription_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = "azure:///subscriptions/other/resourceGroups/demo-x7k2p-rg/providers/Microsoft.Compute/virtualMachines/demo-x7k2p-worker-eastus1-abcde"
      id          = ""
    }
  }


  expect_failures = [data.azurerm_resources.adopted]
}

run "a_machine_of_another_resource_group_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = "azure:///subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/other/providers/Microsoft.Compute/virtualMachines/demo-x7k2p-worker-eastus1-abcde"
      id          = ""
    }
  }


  expect_failures = [data.azurerm_resources.adopted]
}

run "what_is_no_machine_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = "azure:///subscriptions/x"
      id          = "/subscriptions/x/disks/y"
    }
  }


  expect_failures = [data.azurerm_resources.adopted]
}
