provider "registry.opentofu.org/gavinbunney/kubectl" {
  version     = "1.19.0"
  constraints = "1.19.0"
}

provider "registry.terraform.io/gavinbunney/kubectl" {
  version     = "1.19.0"
  constraints = "1.19.0"
}
