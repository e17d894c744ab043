provider "registry.opentofu.org/hashicorp/vsphere" {
  version     = "1.26.0"
  constraints = "1.26.0"
}

provider "registry.terraform.io/hashicorp/vsphere" {
  version     = "1.26.0"
  constraints = "1.26.0"
}
