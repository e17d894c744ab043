terraform {
  required_providers {
    vsphere = {
      source  = "hashicorp/vsphere"
      version = "1.26.0"
    }
  }
}

provider "vsphere" {
  vsphere_server = var.provider_spec.server
}

data "vsphere_datacenter" "this" {
  name = var.provider_spec.server
}

data "vsphere_virtual_machine" "template" {
  name          = "template"
  datacenter_id = data.vsphere_datacenter.this.id

  depends_on = [data.vsphere_datacenter.this]
}

# What a data source says decides what there is.
resource "terraform_data" "counted" {
  count = var.provider_spec.counted ? data.vsphere_virtual_machine.template.num_cpus : 0
}

locals {
  found = var.provider_spec.each ? { for name in data.vsphere_virtual_machine.template.network_interface_types : name => { type = name } } : {}
}

data "vsphere_network" "found" {
  for_each = local.found

  name          = each.value.type
  datacenter_id = data.vsphere_datacenter.this.id
}

resource "terraform_data" "each" {
  for_each = { for name, network in data.vsphere_network.found : name => network.id }

  input = { network = each.value, known = "always" }
}

resource "vsphere_virtual_machine" "this" {
  name             = var.machine.name
  annotation       = var.provider_spec.annotation
  resource_pool_id = "pool"
  scsi_type        = var.provider_spec.scsiType
  extra_config     = { data = var.user_data }
  # Not the default of the data source, which nobody knows before it is read.
  firmware = data.vsphere_virtual_machine.template.firmware == "bios" ? "bios" : "efi"

  disk {
    label = "disk0"
    size  = 16
  }

  lifecycle {
    precondition {
      condition     = data.vsphere_datacenter.this.id != ""
      error_message = "There is no such datacenter."
    }

    # The provider's own default, which its schema does not tell.
    postcondition {
      condition     = self.boot_delay == 0
      error_message = "The default has changed."
    }
  }
}
