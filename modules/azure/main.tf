provider "azurerm" {
  # The cluster's identity may not register resource providers, and need not: the installer has.
  resource_provider_registrations = "none"

  features {
    virtual_machine {
      delete_os_disk_on_deletion = true
    }
  }
}

# Has the subscription, from which the ids of what is there already are made: nothing is looked up that may be gone when it comes to
# a destroy.
data "azurerm_client_config" "current" {}

resource "azurerm_linux_virtual_machine" "this" {
  name                = var.machine.name
  computer_name       = var.machine.name
  location            = var.provider_spec.location
  resource_group_name = var.provider_spec.resourceGroup
  size                = var.provider_spec.vmSize
  tags                = local.tags

  zone                          = local.given.zone
  availability_set_id           = local.availability_set_id
  capacity_reservation_group_id = local.given.capacity_reservation_group
  network_interface_ids         = [azurerm_network_interface.primary.id]

  priority        = local.spot ? "Spot" : "Regular"
  eviction_policy = local.spot ? "Deallocate" : null
  max_bid_price   = local.max_price == "" ? null : tonumber(local.max_price)

  custom_data = base64encode(var.user_data)

  # Azure wants a user. Nobody knows this password, which is made from what only the user data's Secret knows.
  admin_username                  = "capi"
  admin_password                  = local.ssh_key == null ? "Aa1-${sha256("${var.machine.uid} ${var.user_data}")}" : null
  disable_password_authentication = local.ssh_key != null

  dynamic "admin_ssh_key" {
    for_each = local.ssh_key[*]

    content {
      username   = "capi"
      public_key = admin_ssh_key.value
    }
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
    for_each = var.provider_spec.image.type == "MarketplaceWithPlan" ? [var.provider_spec.image] : []

    content {
      publisher = plan.value.publisher
      product   = plan.value.offer
      name      = plan.value.sku
    }
  }

  os_disk {
    name                             = "${var.machine.name}_OSDisk"
    caching                          = var.provider_spec.osDisk.cachingType == "" ? "ReadWrite" : var.provider_spec.osDisk.cachingType
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
  secure_boot_enabled        = local.uefi == null ? null : local.uefi.secureBoot == "Enabled"
  vtpm_enabled               = local.uefi == null ? null : local.uefi.virtualizedTrustedPlatformModule == "Enabled"

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

  lifecycle {
    # A virtual machine is what it was made as. Others tag it, and an import does not know the inputs of its first boot.
    ignore_changes = [
      size, tags, zone, availability_set_id, capacity_reservation_group_id, priority, eviction_policy, max_bid_price,
      custom_data, admin_username, admin_password, disable_password_authentication, admin_ssh_key, source_image_id, source_image_reference, plan,
      os_disk, encryption_at_host_enabled, secure_boot_enabled, vtpm_enabled, additional_capabilities, boot_diagnostics, identity,
    ]
  }
}

# Remembers what the virtual machine was made with, once it is made.
resource "terraform_data" "made_with" {
  input = nonsensitive(local.fixed)

  depends_on = [azurerm_linux_virtual_machine.this]

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = alltrue([for name, value in self.output : jsonencode(value) == jsonencode(nonsensitive(local.fixed)[name])])
      error_message = "A virtual machine that exists stays as it is: take the change back, or delete the Machine so that its MachineSet makes another."
    }
  }
}

locals {
  # What is left out is null to the provider.
  given = {
    zone                       = var.provider_spec.zone == "" ? null : var.provider_spec.zone
    capacity_reservation_group = var.provider_spec.capacityReservationGroupID == "" ? null : var.provider_spec.capacityReservationGroupID
  }

  spot      = var.provider_spec.spotVMOptions != null
  max_price = try(var.provider_spec.spotVMOptions.maxPrice, "")
  ssh_key   = var.provider_spec.sshPublicKey == "" ? null : trimspace(base64decode(var.provider_spec.sshPublicKey))
  uefi      = try(coalesce(var.provider_spec.securityProfile.settings.confidentialVM, var.provider_spec.securityProfile.settings.trustedLaunch).uefiSettings, null)

  # Tags have no slashes in their names here.
  own_tags = {
    "kubernetes.io_cluster.${var.machine.cluster_id}" = "owned"
    "machine-iac.io_machine-uid"                      = var.machine.uid
  }
  tags = merge(var.provider_spec.tags, local.own_tags)

  fixed = merge(
    { for name, value in var.provider_spec : name => value if !contains(["credentialsSecret", "userDataSecret"], name) },
    { userData = sha256(var.user_data) },
  )
}
