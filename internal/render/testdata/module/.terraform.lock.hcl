provider "registry.opentofu.org/acme/example" {
  version     = "1.2.3"
  constraints = "1.2.3"
}
