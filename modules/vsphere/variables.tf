variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name becomes the virtual machine's name and hostname; its UID is in the annotation."

  validation {
    condition     = length(var.machine.name) <= 63
    error_message = "The Machine's name becomes the hostname, which has at most 63 characters: give the MachineSet a shorter name."
  }
}

variable "provider_spec" {
  type = object({
    template          = string
    snapshot          = optional(string, "")
    cloneMode         = optional(string, "fullClone")
    numCPUs           = optional(number)
    numCoresPerSocket = optional(number)
    memoryMiB         = optional(number)
    diskGiB           = optional(number)
    dataDisks = optional(list(object({
      name             = string
      sizeGiB          = number
      provisioningMode = optional(string, "")
    })), [])
    network = object({
      devices = list(object({
        networkName        = string
        gateway            = optional(string, "")
        ipAddrs            = optional(list(string), [])
        nameservers        = optional(list(string), [])
        addressesFromPools = optional(list(object({ group = string, resource = string, name = string })), [])
      }))
    })
    tagIDs = optional(list(string), [])
    workspace = object({
      server       = string
      datacenter   = optional(string, "")
      folder       = optional(string, "")
      datastore    = optional(string, "")
      resourcePool = optional(string, "")
      vmGroup      = optional(string, "")
    })
    credentialsSecret = object({ name = string })
    userDataSecret    = optional(object({ name = string }))
  })
  description = "The fields of a VSphereMachineProviderSpec; the README explains each."

  validation {
    condition     = var.provider_spec.template != ""
    error_message = "template must be provided: it is the template to clone: write its name, or its inventory path."
  }

  validation {
    condition     = var.provider_spec.workspace.server != ""
    error_message = "server must be provided: workspace.server is the vCenter to work on: write its name or address."
  }

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]{0,253}$", var.provider_spec.workspace.server))
    error_message = "workspace.server is a name or an IPv4 address, without a scheme, a port or a path: write it as server: vcenter.example.com."
  }

  validation {
    condition     = var.provider_spec.workspace.folder == "" || startswith(var.provider_spec.workspace.folder, "/${var.provider_spec.workspace.datacenter}/vm/")
    error_message = "folder must be absolute path: expected prefix \"/${var.provider_spec.workspace.datacenter}/vm/\". It is an inventory path: begin it with /, the datacenter and /vm/, or leave it out for the datacenter's root folder."
  }

  validation {
    condition     = length(var.provider_spec.workspace.vmGroup) <= 80
    error_message = "vmGroup must be less than 80 characters in length: workspace.vmGroup is the name of a group of virtual machines of the pool's compute cluster."
  }

  validation {
    condition     = try(var.provider_spec.userDataSecret.name, "") != ""
    error_message = "userDataSecret must be provided: write it as userDataSecret: {name: worker-user-data}."
  }

  validation {
    condition = alltrue([
      for number in [var.provider_spec.numCPUs, var.provider_spec.numCoresPerSocket, var.provider_spec.memoryMiB, var.provider_spec.diskGiB] :
      number == null ? true : number >= 0 && floor(number) == number
    ])
    error_message = "numCPUs, numCoresPerSocket, memoryMiB and diskGiB are whole numbers; leave one out, or write 0, for what the template has."
  }

  validation {
    condition = (
      coalesce(var.provider_spec.numCPUs, 0) <= 0 || coalesce(var.provider_spec.numCoresPerSocket, 0) <= 0 ? true :
      coalesce(var.provider_spec.numCPUs, 1) % coalesce(var.provider_spec.numCoresPerSocket, 1) == 0
    )
    error_message = "numCPUs is a multiple of numCoresPerSocket, as every socket has as many cores: write for example numCPUs: 4 and numCoresPerSocket: 2."
  }

  validation {
    condition     = length(var.provider_spec.network.devices) >= 1 && length(var.provider_spec.network.devices) <= 10
    error_message = "at least 1 network device must be provided: network.devices names 1 to 10 networks: write at least - networkName: NAME."
  }

  validation {
    condition     = alltrue([for device in var.provider_spec.network.devices : device.networkName != ""])
    error_message = "networkName must be provided: network.devices[].networkName is the network or port group: write it as networkName: VM Network."
  }

  validation {
    condition = alltrue(flatten([
      for device in var.provider_spec.network.devices : [for address in device.ipAddrs : can(cidrhost(address, 0))]
    ]))
    error_message = "network.devices[].ipAddrs are addresses with the length of their prefix: write them as 192.168.1.100/24."
  }

  validation {
    condition = alltrue([
      for device in var.provider_spec.network.devices :
      device.gateway == "" || can(cidrhost("${device.gateway}/32", 0)) || can(cidrhost("${device.gateway}/128", 0))
    ])
    error_message = "network.devices[].gateway is an address: write it as 192.168.1.1."
  }

  validation {
    condition = alltrue(flatten([
      for device in var.provider_spec.network.devices :
      [for server in device.nameservers : can(cidrhost("${server}/32", 0)) || can(cidrhost("${server}/128", 0))]
    ]))
    error_message = "network.devices[].nameservers are addresses: write them as 192.168.1.53."
  }

  validation {
    condition     = length(var.provider_spec.tagIDs) <= 10
    error_message = "a maximum of 10 tags are allowed: leave some out."
  }

  validation {
    condition     = alltrue([for id in var.provider_spec.tagIDs : can(regex("^urn:vmomi:InventoryServiceTag:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}:[^:]+$", id))])
    error_message = "tagIDs are URNs: write them as urn:vmomi:InventoryServiceTag:5736bf56-49f5-4667-b38c-b97e09dc9578:GLOBAL."
  }

  validation {
    condition     = length(var.provider_spec.dataDisks) <= 29
    error_message = "dataDisks has at most 29 disks: leave some out."
  }

  validation {
    condition = alltrue([
      for disk in var.provider_spec.dataDisks : can(regex("^[a-zA-Z0-9]([-_a-zA-Z0-9]{0,78}[a-zA-Z0-9])?$", disk.name))
    ]) && length(distinct(var.provider_spec.dataDisks[*].name)) == length(var.provider_spec.dataDisks)
    error_message = "dataDisks[].name is each disk's own, 80 characters at most: write letters, digits, '-' and '_', for example name: images_1."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : disk.sizeGiB >= 1 && disk.sizeGiB <= 16384 && floor(disk.sizeGiB) == disk.sizeGiB])
    error_message = "dataDisks[].sizeGiB is a whole number from 1 to 16384: write it as sizeGiB: 100."
  }

  validation {
    condition     = alltrue([for disk in var.provider_spec.dataDisks : contains(["", "Thin", "Thick", "EagerlyZeroed"], disk.provisioningMode)])
    error_message = "dataDisks[].provisioningMode is Thin, Thick or EagerlyZeroed: leave it out for what the datastore does."
  }
}

variable "cluster" {
  type = object({
    installation = optional(string, "")
    platform     = optional(string)
    failure_domains = optional(list(object({
      name          = string, region = string, zone = string, server = string, datacenter = string, compute_cluster = string, datastore = string,
      resource_pool = string, host_group = string, vm_group = string
    })), [])
  })
  description = "What is known of the cluster."
  default     = {}
}

variable "recorded" {
  type = object({
    resource_pool_id = string
    datastore_id     = string
    network_ids      = list(string)
    tag_ids          = list(string)
    snapshot         = string
    template = object({
      id = string, num_cpus = number, num_cores_per_socket = number, memory = number, guest_id = string, firmware = string, scsi_type = string
      settings = optional(object({
        alternate_guest_name                    = optional(string)
        boot_delay                              = optional(number)
        boot_retry_delay                        = optional(number)
        boot_retry_enabled                      = optional(bool)
        cpu_hot_add_enabled                     = optional(bool)
        cpu_hot_remove_enabled                  = optional(bool)
        cpu_limit                               = optional(number)
        cpu_performance_counters_enabled        = optional(bool)
        cpu_reservation                         = optional(number)
        cpu_share_count                         = optional(number)
        cpu_share_level                         = optional(string)
        efi_secure_boot_enabled                 = optional(bool)
        enable_logging                          = optional(bool)
        ept_rvi_mode                            = optional(string)
        hv_mode                                 = optional(string)
        latency_sensitivity                     = optional(string)
        memory_hot_add_enabled                  = optional(bool)
        memory_limit                            = optional(number)
        memory_reservation                      = optional(number)
        memory_share_count                      = optional(number)
        memory_share_level                      = optional(string)
        nested_hv_enabled                       = optional(bool)
        run_tools_scripts_after_power_on        = optional(bool)
        run_tools_scripts_after_resume          = optional(bool)
        run_tools_scripts_before_guest_reboot   = optional(bool)
        run_tools_scripts_before_guest_shutdown = optional(bool)
        run_tools_scripts_before_guest_standby  = optional(bool)
        scsi_bus_sharing                        = optional(string)
        swap_placement_policy                   = optional(string)
        sync_time_with_host                     = optional(bool)
      }), {})
    })
    disk = object({ size = number, thin_provisioned = bool, eagerly_scrub = bool })
  })
  description = "What the virtual machine was made of; null until it is there."
  default     = null
}

variable "user_data" {
  type        = string
  description = "The Ignition configuration that the virtual machine reads at its first boot."
  sensitive   = true
}
