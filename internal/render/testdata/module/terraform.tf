terraform {
  required_providers {
    example = {
      source  = "acme/example"
      version = "1.2.3"
    }
  }
}
