# Runs with the files of inventory/ beside the module's.
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
  cluster   = { installation = "c0ffee00-0000-4000-8000-000000000001" }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "lists_machines" {
  command = plan

  override_data {
    target = data.azurerm_resources.inventory
    values = { resources = [{ id = "/subscriptions/s/resourceGroups/Demo-RG/providers/Microsoft.Compute/virtualMachines/a", name = "a", type = "t", location = "eastus", tags = { "machine-iac.io_machine-uid" = "u", "machine-iac.io_installation" = "i" }, resource_group_name = "Demo-RG" }] }
  }
  assert {
    condition     = data.azurerm_resources.inventory.required_tags == tomap({ "kubernetes.io_cluster.demo-x7k2p" = "owned" })
    error_message = "Virtual machines of other clusters are not asked for."
  }
  assert {
    condition     = output.inventory == [{ provider_id = "azure:///subscriptions/s/resourceGroups/demo-rg/providers/Microsoft.Compute/virtualMachines/a", name = "a", created = "", machine_uid = "u", installation = "i" }]
    error_message = "Every virtual machine is listed, with the UID of its Machine."
  }
  assert {
    condition     = azurerm_linux_virtual_machine.this[0].tags["machine-iac.io_installation"] == "c0ffee00-0000-4000-8000-000000000001"
    error_message = "What is made bears the UID of the installation."
  }
}
