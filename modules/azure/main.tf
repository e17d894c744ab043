provider "azurerm" {
  # The cluster's identity may not register resource providers, and need not: the installer has.
  resource_provider_registrations = "none"

  features {
    virtual_machine {
      delete_os_disk_on_deletion = true
    }
  }
}

# Has the subscription, from which the ids of what is there already are made: nothing is looked up by name that may be gone when it comes
# to a destroy.
data "azurerm_client_config" "current" {}

resource "azurerm_linux_virtual_machine" "this" {
  count = local.resource == "linux" ? 1 : 0

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

  # Azure wants a user. Nobody knows this password, which is made from what only the user data's Secret knows.
  admin_username                  = "capi"
  admin_password                  = local.ssh_key == null ? local.password : null
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
      custom_data, admin_username, admin_password, disable_password_authentication, admin_ssh_key, source_image_id, source_image_reference, plan,
      os_disk, encryption_at_host_enabled, secure_boot_enabled, vtpm_enabled, additional_capabilities, boot_diagnostics, identity,
    ]
  }
}

# Remembers what the virtual machine was made with, once it is made.
resource "terraform_data" "made_with" {
  input = local.fixed

  depends_on = [azurerm_linux_virtual_machine.this, azurerm_windows_virtual_machine.this, azurerm_virtual_machine.this]

  lifecycle {
    ignore_changes = [input]

    postcondition {
      # What earlier versions of this module compared, such as user data, is no matter any more.
      condition     = alltrue([for name, value in self.output : jsonencode(value) == jsonencode(try(local.fixed[name], value))])
      error_message = "A virtual machine that exists stays as it is, so ${join(", ", [for name, value in self.output : name if jsonencode(value) != jsonencode(try(local.fixed[name], value))])} cannot change: take the change back, or delete the Machine so that its MachineSet makes another."
    }
  }
}

# The region of a Machine that names none is its resource group's, which may be gone with the virtual machine.
data "azurerm_resource_group" "cluster" {
  count = var.recorded == null && var.provider_spec.location == "" ? 1 : 0

  name = var.provider_spec.resourceGroup
}

# The state of its power. The name is made of the id, so that nothing is asked before there is a virtual machine.
data "azurerm_virtual_machine" "this" {
  name                = basename(local.id)
  resource_group_name = var.provider_spec.resourceGroup
}

locals {
  group_location = var.recorded != null ? var.recorded.location : one(data.azurerm_resource_group.cluster[*].location)
  location       = var.provider_spec.location == "" ? local.group_location : var.provider_spec.location

  # What is left out is null to the provider. On Azure Stack Hub a zone beside an availability set says nothing.
  given = {
    zone                       = var.provider_spec.zone == "" || var.provider_spec.availabilitySet != "" ? null : var.provider_spec.zone
    capacity_reservation_group = var.provider_spec.capacityReservationGroupID == "" ? null : var.provider_spec.capacityReservationGroupID
  }

  # Which resource is the virtual machine. Only the oldest, azurerm_virtual_machine, has data disks when it boots first, where Ignition looks for
  # them, and it lacks what came later.
  windows  = var.provider_spec.osDisk.osType == "Windows"
  resource = local.windows ? "windows" : length(var.provider_spec.dataDisks) > 0 && local.plain ? "plain" : "linux"
  plain = alltrue([
    !local.spot, local.security == "", var.provider_spec.securityProfile.encryptionAtHost != true, local.os_disk.encryption_set == null,
    var.provider_spec.osDisk.diskSettings.ephemeralStorageLocation == "", local.given.capacity_reservation_group == null,
    var.provider_spec.diagnostics.boot == null ? true : var.provider_spec.diagnostics.boot.storageAccountType == "CustomerManaged",
  ])
  id = one(concat(azurerm_linux_virtual_machine.this[*].id, azurerm_windows_virtual_machine.this[*].id, azurerm_virtual_machine.this[*].id))

  spot = var.provider_spec.spotVMOptions != null
  # A quantity of Kubernetes: what was written as 0.05 may have become 50m.
  price     = try(regex("^(-1|[0-9]+(?:[.][0-9]+)?)([num]?)$", var.provider_spec.spotVMOptions.maxPrice), null)
  max_price = local.price == null ? null : tonumber(local.price[0]) / { "" = 1, m = 1000, u = 1000000, n = 1000000000 }[local.price[1]]

  ssh_key = var.provider_spec.sshPublicKey == "" ? null : trimspace(base64decode(var.provider_spec.sshPublicKey))
  # Nobody knows it: it is made from what only the user data's Secret knows.
  password = "Aa1-${sha256("${var.machine.uid} ${var.user_data}")}"

  # Settings count for their own type only. A trusted launch without any is none.
  settings = var.provider_spec.securityProfile.settings
  trusted  = contains([try(local.settings.trustedLaunch.uefiSettings.secureBoot, ""), try(local.settings.trustedLaunch.uefiSettings.virtualizedTrustedPlatformModule, "")], "Enabled")
  security = (local.settings.securityType == "ConfidentialVM" || (local.settings.securityType == "TrustedLaunch" && local.trusted)) ? local.settings.securityType : ""
  uefi = {
    ConfidentialVM = try(local.settings.confidentialVM.uefiSettings, null)
    TrustedLaunch  = try(local.settings.trustedLaunch.uefiSettings, null)
  }
  secure_boot = local.security == "" ? null : local.uefi[local.security].secureBoot == "Enabled"
  vtpm        = local.security == "" ? null : local.uefi[local.security].virtualizedTrustedPlatformModule == "Enabled"

  # Tags have no slashes in their names here.
  own_tags = merge({
    "kubernetes.io_cluster.${var.machine.cluster_id}" = "owned"
    "machine-iac.io_machine-uid"                      = var.machine.uid
  }, var.cluster.installation == "" ? {} : { "machine-iac.io_installation" = var.cluster.installation })
  tags = merge(try({ for tag in var.cluster.resource_tags : tag.key => tag.value }, {}), var.provider_spec.tags, local.own_tags)

  fixed = { for name, value in var.provider_spec : name => value if !contains(["credentialsSecret", "userDataSecret"], name) }
}
