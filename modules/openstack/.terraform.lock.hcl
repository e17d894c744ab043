provider "registry.opentofu.org/terraform-provider-openstack/openstack" {
  version     = "1.54.1"
  constraints = "1.54.1"
}

provider "registry.terraform.io/terraform-provider-openstack/openstack" {
  version     = "1.54.1"
  constraints = "1.54.1"
}
