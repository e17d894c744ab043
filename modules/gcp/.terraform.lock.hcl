provider "registry.opentofu.org/hashicorp/google" {
  version     = "7.45.0"
  constraints = "7.45.0"
}

provider "registry.terraform.io/hashicorp/google" {
  version     = "7.45.0"
  constraints = "7.45.0"
}
