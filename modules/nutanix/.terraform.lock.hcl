provider "registry.opentofu.org/nutanix/nutanix" {
  version     = "1.9.5"
  constraints = "1.9.5"
}

provider "registry.terraform.io/nutanix/nutanix" {
  version     = "1.9.5"
  constraints = "1.9.5"
}
