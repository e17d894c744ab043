variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself. Its name becomes the domain's name and the hostname; its UID is in the description and in the names of volumes."

  validation {
    condition     = length(var.machine.name) <= 63
    error_message = "The Machine's name becomes the hostname, which has at most 63 characters: give the MachineSet a shorter name."
  }
}

variable "provider_spec" {
  type = object({
    domainMemory = number
    domainVcpu   = number
    ignKey       = optional(string, "")
    ignition     = optional(object({ userDataSecret = optional(string, "") }))
    cloudInit = optional(object({
      userDataSecret = optional(string, "")
      sshAccess      = optional(bool, false)
    }))
    volume = object({
      poolName     = string
      baseVolumeID = string
      volumeName   = optional(string, "")
      volumeSize   = optional(string)
    })
    networkInterfaceName     = optional(string, "")
    networkInterfaceHostname = optional(string, "")
    networkInterfaceAddress  = optional(string, "")
    networkUUID              = optional(string, "")
    autostart                = optional(bool, false)
    uri                      = string
  })
  description = "The fields of a LibvirtMachineProviderConfig; the README explains each."

  validation {
    condition     = can(regex("^qemu(\\+(unix|tcp|tls|ssh))?://[^/]*/(system|session)([?].*)?$", var.provider_spec.uri))
    error_message = "uri is how libvirt is reached: write it as qemu+tcp://192.168.122.1/system, with unix, tcp, tls or ssh after the plus sign."
  }

  validation {
    condition     = can(regex("^[^/]*//([^/@]*@)?([A-Za-z0-9._-]{0,253}|\\[[0-9A-Fa-f:.]{2,45}\\])(:[0-9]{1,5})?/[^/?]*([?].*)?$", var.provider_spec.uri))
    error_message = "The host in uri is a name or an address, perhaps with a port: write it as qemu+tcp://192.168.122.1/system."
  }

  validation {
    # Whoever writes a Machine chooses neither which files of the manager sign in, nor to what sockets of its Pod it connects.
    condition = alltrue([
      for parameter in flatten([for query in regexall("[?](.*)$", var.provider_spec.uri) : split("&", query[0])]) : !strcontains(parameter, "..") && can(
        regex("^(keyfile=/etc/libvirt-ssh/|knownhosts=/etc/libvirt-ssh/|pkipath=/etc/pki/|socket=/run/libvirt/|socket=/var/run/libvirt/)[A-Za-z0-9._/-]+$", parameter)
      )
    ])
    error_message = "Of the parameters of uri, keyfile and knownhosts name files in /etc/libvirt-ssh, pkipath a folder in /etc/pki, and socket one in /run/libvirt: put the files there, and leave other parameters out."
  }

  validation {
    condition     = !can(regex("^[^/]*//[^/@]*:[^/@]*@", var.provider_spec.uri))
    error_message = "uri is kept with the Machine, where a password does not belong: leave it out, and log in by a key, as in qemu+ssh://core@host/system?keyfile=/etc/libvirt-ssh/id."
  }

  validation {
    condition     = var.provider_spec.domainMemory >= 1 && floor(var.provider_spec.domainMemory) == var.provider_spec.domainMemory
    error_message = "domainMemory is the memory in MiB, a whole number: write it as domainMemory: 8192."
  }

  validation {
    condition     = var.provider_spec.domainVcpu >= 1 && floor(var.provider_spec.domainVcpu) == var.provider_spec.domainVcpu
    error_message = "domainVcpu is a whole number of processors and at least 1: write it as domainVcpu: 4."
  }

  validation {
    condition     = var.provider_spec.volume.poolName != ""
    error_message = "volume.poolName is the storage pool that the volume is made in: write the name of one that exists."
  }

  validation {
    condition     = var.provider_spec.volume.baseVolumeID != ""
    error_message = "volume.baseVolumeID is the volume with the operating system: write its name in the pool, or the path of its file."
  }

  validation {
    condition     = var.provider_spec.volume.volumeName == ""
    error_message = "volume.volumeName is not supported, as Machines of one set would share the volume: leave it out, and each gets one of its own."
  }

  validation {
    condition     = var.provider_spec.volume.volumeSize == null ? true : can(regex("^[0-9]+([.][0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$", var.provider_spec.volume.volumeSize))
    error_message = "volume.volumeSize is a quantity of bytes: write it as volumeSize: 32Gi, or leave it out for the size of the base volume."
  }

  validation {
    condition     = try(var.provider_spec.ignition.userDataSecret, "") != "" || var.provider_spec.ignKey != ""
    error_message = "A Machine without user data joins no cluster: name the Secret with it in ignition.userDataSecret."
  }

  validation {
    condition     = try(var.provider_spec.ignition.userDataSecret, "") == "" || var.provider_spec.ignKey == ""
    error_message = "The user data is in ignition.userDataSecret or in ignKey: leave one out."
  }

  validation {
    condition     = var.provider_spec.ignKey == "" || can(regex("^/[^,;]+$", var.provider_spec.ignKey))
    error_message = "ignKey is the path of an Ignition configuration on the host of libvirt, without ',' and ';': write it as /var/lib/libvirt/images/worker.ign, or use ignition.userDataSecret."
  }

  validation {
    condition     = try(var.provider_spec.cloudInit.userDataSecret, "") == "" && !try(var.provider_spec.cloudInit.sshAccess, false)
    error_message = "cloudInit is not supported, as its disk takes a program, mkisofs, that is not where providers run: boot an image with Ignition, and use ignition.userDataSecret."
  }

  validation {
    condition     = var.provider_spec.networkInterfaceName != "" || var.provider_spec.networkUUID != ""
    error_message = "A Machine needs a network: name it in networkInterfaceName."
  }

  validation {
    condition     = var.provider_spec.networkInterfaceName == "" || var.provider_spec.networkUUID == ""
    error_message = "The network is named by networkInterfaceName or by networkUUID: leave one out."
  }

  validation {
    condition     = var.provider_spec.networkUUID == "" || can(regex("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", var.provider_spec.networkUUID))
    error_message = "networkUUID is a UUID: write it as virsh net-uuid shows it, or name the network in networkInterfaceName."
  }

  validation {
    condition     = var.provider_spec.networkInterfaceAddress == "" || can(cidrhost(var.provider_spec.networkInterfaceAddress, 0))
    error_message = "networkInterfaceAddress is the range of the network's addresses, of which DHCP gives one: write it as 192.168.126.0/24, or leave it out for a network whose addresses libvirt does not give."
  }

  validation {
    condition     = var.provider_spec.networkInterfaceHostname == ""
    error_message = "networkInterfaceHostname is not supported, as Machines of one set would share the name: leave it out; the hostname is the Machine's name."
  }
}

variable "cluster" {
  type        = object({ installation = optional(string, "") })
  description = "The UID of the operator's installation, which the domain bears."
  default     = {}
}

variable "user_data" {
  type        = string
  description = "The Ignition configuration that the domain reads at its first boot."
  sensitive   = true

  validation {
    # The provider would take other text for the name of a file, and upload that.
    condition     = var.user_data == "" || can(jsondecode(var.user_data).ignition.version)
    error_message = "The user data is no Ignition configuration: write a JSON object with ignition.version into the key userData of the Secret."
  }
}
