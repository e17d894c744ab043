# A virtual machine with data disks from its first boot on. The provider's newer resources attach disks when the virtual machine is made, which
# Ignition does not wait for.
resource "azurerm_virtual_machine" "this" {
  count = local.resource == "plain" ? 1 : 0

  name                  = var.machine.name
  location              = local.location
  resource_group_name   = var.provider_spec.resourceGroup
  vm_size               = var.provider_spec.vmSize
  tags                  = local.tags
  zones                 = local.given.zone[*]
  availability_set_id   = local.availability_set_id
  network_interface_ids = [azurerm_network_interface.primary.id]

  # Never data disks: a volume of a Pod may still be attached. Those that end with the Machine are resources of their own.
  delete_os_disk_on_termination    = true
  delete_data_disks_on_termination = false

  os_profile {
    computer_name  = var.machine.name
    admin_username = "capi"
    admin_password = local.ssh_key == null ? local.password : null
    custom_data    = var.user_data == "" ? null : base64encode(var.user_data)
  }

  os_profile_linux_config {
    disable_password_authentication = local.ssh_key != null

    dynamic "ssh_keys" {
      for_each = local.ssh_key[*]

      content {
        path     = "/home/capi/.ssh/authorized_keys"
        key_data = ssh_keys.value
      }
    }
  }

  storage_image_reference {
    id        = local.image_id
    publisher = local.image_id == null ? var.provider_spec.image.publisher : null
    offer     = local.image_id == null ? var.provider_spec.image.offer : null
    sku       = local.image_id == null ? var.provider_spec.image.sku : null
    version   = local.image_id == null ? var.provider_spec.image.version : null
  }

  dynamic "plan" {
    for_each = local.plan

    content {
      publisher = plan.value.publisher
      product   = plan.value.offer
      name      = plan.value.sku
    }
  }

  storage_os_disk {
    name              = "${var.machine.name}_OSDisk"
    os_type           = "Linux"
    create_option     = "FromImage"
    caching           = local.os_disk.caching
    disk_size_gb      = var.provider_spec.osDisk.diskSizeGB
    managed_disk_type = local.os_disk.storage_account_type
  }

  dynamic "storage_data_disk" {
    for_each = azurerm_managed_disk.data

    content {
      name            = storage_data_disk.value.name
      create_option   = "Attach"
      managed_disk_id = storage_data_disk.value.id
      disk_size_gb    = storage_data_disk.value.disk_size_gb
      lun             = local.data_disks[storage_data_disk.key].lun
      caching         = local.data_disks[storage_data_disk.key].caching
    }
  }

  # These stay when the virtual machine goes.
  dynamic "storage_data_disk" {
    for_each = local.kept_disks

    content {
      name              = "${var.machine.name}_${storage_data_disk.key}"
      create_option     = "Empty"
      managed_disk_type = storage_data_disk.value.type
      disk_size_gb      = storage_data_disk.value.diskSizeGB
      lun               = storage_data_disk.value.lun
      caching           = storage_data_disk.value.caching
    }
  }

  dynamic "additional_capabilities" {
    for_each = local.ultra_disks[*]

    content {
      ultra_ssd_enabled = additional_capabilities.value
    }
  }

  dynamic "boot_diagnostics" {
    for_each = var.provider_spec.diagnostics.boot[*]

    content {
      enabled     = true
      storage_uri = try(boot_diagnostics.value.customerManaged.storageAccountURI, "")
    }
  }

  dynamic "identity" {
    for_each = local.identity_id[*]

    content {
      type         = "UserAssigned"
      identity_ids = [identity.value]
    }
  }

  # A lookup that finds the virtual machine knows by it that its interface is associated with all that it should be.
  depends_on = [
    azurerm_network_interface_security_group_association.primary, azurerm_network_interface_application_security_group_association.primary,
    azurerm_network_interface_backend_address_pool_association.primary,
  ]

  lifecycle {
    # As with the others. Volumes of Pods come and go among the data disks.
    ignore_changes = [
      vm_size, tags, zones, availability_set_id, os_profile, os_profile_linux_config, storage_image_reference, plan, storage_os_disk, storage_data_disk,
      additional_capabilities, boot_diagnostics, identity, delete_os_disk_on_termination, delete_data_disks_on_termination,
    ]
  }
}
