provider "registry.opentofu.org/hashicorp/aws" {
  version     = "6.25.0"
  constraints = "6.25.0"
}

provider "registry.terraform.io/hashicorp/aws" {
  version     = "6.25.0"
  constraints = "6.25.0"
}
