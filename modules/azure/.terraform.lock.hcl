provider "registry.opentofu.org/hashicorp/azurerm" {
  version     = "5.2.0"
  constraints = "5.2.0"
}

provider "registry.terraform.io/hashicorp/azurerm" {
  version     = "5.2.0"
  constraints = "5.2.0"
}
