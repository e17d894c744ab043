provider "vsphere" {
  vsphere_server = "vcenter.example.com"
}

data "vsphere_datacenter" "this" {
  name = "DC0"
}

data "vsphere_resource_pool" "this" {
  name          = var.provider_spec.pool
  datacenter_id = data.vsphere_datacenter.this.id
}

resource "vsphere_virtual_machine" "this" {
  name             = var.machine.name
  annotation       = var.machine.cluster_id
  resource_pool_id = data.vsphere_resource_pool.this.id
  num_cpus         = var.provider_spec.instanceType == "large" ? 16 : 2
  extra_config = merge(
    { for key, value in var.provider_spec.tags : "tag.${key}" => value },
    { password = sensitive(var.provider_spec.password), data = var.user_data },
  )

  disk {
    label            = "disk0"
    size             = var.provider_spec.diskGiB
    thin_provisioned = true
  }

  lifecycle {
    precondition {
      condition     = data.vsphere_datacenter.this.id != ""
      error_message = "There is no such datacenter."
    }
  }
}
