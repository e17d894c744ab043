# The disks, with what is left out as null.
locals {
  os_disk = {
    caching              = var.provider_spec.osDisk.cachingType == "" ? "ReadWrite" : var.provider_spec.osDisk.cachingType
    storage_account_type = try(coalesce(var.provider_spec.osDisk.managedDisk.storageAccountType), "Premium_LRS")
    encryption_set       = try(coalesce(var.provider_spec.osDisk.managedDisk.diskEncryptionSet.id), null)
    guest_encryption     = try(coalesce(var.provider_spec.osDisk.managedDisk.securityProfile.securityEncryptionType), null)
    # Of the guest's state, so that it says nothing where that is not encrypted.
    guest_encryption_set = (var.provider_spec.osDisk.managedDisk.securityProfile.securityEncryptionType == "" ? null :
    try(coalesce(var.provider_spec.osDisk.managedDisk.securityProfile.diskEncryptionSet.id), null))
  }

  disks = { for disk in var.provider_spec.dataDisks : disk.nameSuffix => merge(disk, {
    type    = disk.managedDisk.storageAccountType == "" ? "Premium_LRS" : disk.managedDisk.storageAccountType
    caching = disk.cachingType == "" ? "None" : disk.cachingType
  }) }
  data_disks = { for suffix, disk in local.disks : suffix => disk if disk.deletionPolicy != "Detach" }
  # Those that come when the virtual machine is there.
  attached_disks = { for suffix, disk in local.data_disks : suffix => disk if local.resource != "plain" }
  kept_disks     = { for suffix, disk in local.disks : suffix => disk if disk.deletionPolicy == "Detach" }

  # Ultra disks among the data disks bring the capability along.
  has_ultra   = contains(var.provider_spec.dataDisks[*].managedDisk.storageAccountType, "UltraSSD_LRS")
  ultra_disks = var.provider_spec.ultraSSDCapability == "" ? (local.has_ultra ? true : null) : var.provider_spec.ultraSSDCapability == "Enabled"
}

resource "azurerm_managed_disk" "data" {
  for_each = local.data_disks

  name                   = "${var.machine.name}_${each.key}"
  location               = local.location
  resource_group_name    = var.provider_spec.resourceGroup
  zone                   = local.given.zone
  create_option          = "Empty"
  disk_size_gb           = each.value.diskSizeGB
  storage_account_type   = each.value.type
  disk_encryption_set_id = each.value.managedDisk.diskEncryptionSet.id == "" ? null : each.value.managedDisk.diskEncryptionSet.id
  tags                   = local.tags

  lifecycle {
    ignore_changes = [zone, disk_size_gb, storage_account_type, disk_encryption_set_id, tags]
  }
}

resource "azurerm_virtual_machine_data_disk_attachment" "data" {
  for_each = local.attached_disks

  virtual_machine_id = local.id
  managed_disk_id    = azurerm_managed_disk.data[each.key].id
  lun                = each.value.lun
  caching            = each.value.caching

  lifecycle {
    ignore_changes = [lun, caching]
  }
}
