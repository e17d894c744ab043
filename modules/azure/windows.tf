# A virtual machine with Windows. All but its first boot is as with Linux.
resource "azurerm_windows_virtual_machine" "this" {
  count = local.resource == "windows" ? 1 : 0

  name                = var.machine.name
  computer_name       = var.machine.name
  location            = local.location
  resource_group_name = var.provider_spec.resourceGroup
  size                = var.provider_spec.vmSize
  tags                = local.tags

  zone                          = local.given.zone
  availability_set_id           = local.availability_set_id
  capacity_reservation_group_id = local.given.capacity_reservation_group
  network_interface_ids         = [azurerm_network_interface.primary.id]

  priority        = local.spot ? "Spot" : "Regular"
  eviction_policy = local.spot ? "Delete" : null
  max_bid_price   = local.max_price

  custom_data = var.user_data == "" ? null : base64encode(var.user_data)

  # Azure wants a user. The first logon runs the user data, a script.
  admin_username            = "capi"
  admin_password            = local.password
  automatic_updates_enabled = false
  patch_mode                = "Manual"

  additional_unattend_content {
    setting = "AutoLogon"
    content = "<AutoLogon><Username>capi</Username><Password><Value>${local.password}</Value></Password><Enabled>true</Enabled><LogonCount>1</LogonCount></AutoLogon>"
  }

  additional_unattend_content {
    setting = "FirstLogonCommands"
    content = <<-XML
      <FirstLogonCommands>
        <SynchronousCommand>
          <Description>The user data becomes a script</Description>
          <CommandLine>cmd /c "copy C:\AzureData\CustomData.bin C:\init.ps1"</CommandLine>
          <Order>11</Order>
        </SynchronousCommand>
        <SynchronousCommand>
          <Description>The script runs</Description>
          <CommandLine>powershell.exe -NonInteractive -ExecutionPolicy Bypass -File C:\init.ps1</CommandLine>
          <Order>12</Order>
        </SynchronousCommand>
      </FirstLogonCommands>
    XML
  }

  source_image_id = local.image_id

  dynamic "source_image_reference" {
    for_each = local.image_id == null ? [var.provider_spec.image] : []

    content {
      publisher = source_image_reference.value.publisher
      offer     = source_image_reference.value.offer
      sku       = source_image_reference.value.sku
      version   = source_image_reference.value.version
    }
  }

  dynamic "plan" {
    for_each = local.plan

    content {
      publisher = plan.value.publisher
      product   = plan.value.offer
      name      = plan.value.sku
    }
  }

  os_disk {
    name                             = "${var.machine.name}_OSDisk"
    caching                          = local.os_disk.caching
    disk_size_gb                     = var.provider_spec.osDisk.diskSizeGB
    storage_account_type             = local.os_disk.storage_account_type
    disk_encryption_set_id           = local.os_disk.encryption_set
    secure_vm_disk_encryption_set_id = local.os_disk.guest_encryption_set
    security_encryption_type         = local.os_disk.guest_encryption

    dynamic "diff_disk_settings" {
      for_each = compact([var.provider_spec.osDisk.diskSettings.ephemeralStorageLocation])

      content {
        option = diff_disk_settings.value
      }
    }
  }

  encryption_at_host_enabled = var.provider_spec.securityProfile.encryptionAtHost
  secure_boot_enabled        = local.secure_boot
  vtpm_enabled               = local.vtpm

  dynamic "additional_capabilities" {
    for_each = local.ultra_disks[*]

    content {
      ultra_ssd_enabled = additional_capabilities.value
    }
  }

  dynamic "boot_diagnostics" {
    for_each = var.provider_spec.diagnostics.boot[*]

    content {
      storage_account_uri = try(boot_diagnostics.value.customerManaged.storageAccountURI, null)
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
    # A virtual machine is what it was made as. Others tag it, and an import does not know the inputs of its first boot.
    ignore_changes = [
      size, tags, zone, availability_set_id, capacity_reservation_group_id, priority, eviction_policy, max_bid_price,
      custom_data, admin_username, admin_password, automatic_updates_enabled, patch_mode, additional_unattend_content, source_image_id, source_image_reference, plan,
      os_disk, encryption_at_host_enabled, secure_boot_enabled, vtpm_enabled, additional_capabilities, boot_diagnostics, identity,
    ]
  }
}
