provider "registry.opentofu.org/dmacvicar/libvirt" {
  version     = "0.7.6"
  constraints = "0.7.6"
}

provider "registry.terraform.io/dmacvicar/libvirt" {
  version     = "0.7.6"
  constraints = "0.7.6"
}
