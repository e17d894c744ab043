# What the guest reads when it boots first: Ignition takes its configuration and hostname from there, and Afterburn its static addresses.
locals {
  # As dracut reads them: version 6 in brackets, and a gateway with the addresses of its own version.
  kernel_arguments = join(" ", flatten([
    for device in var.provider_spec.network.devices : [
      [for address in device.ipAddrs : format("ip=%s::%s:%s:::none",
        strcontains(address, ":") ? "[${split("/", address)[0]}]" : split("/", address)[0],
        strcontains(address, ":") != strcontains(device.gateway, ":") ? "" : strcontains(device.gateway, ":") ? "[${device.gateway}]" : device.gateway,
        strcontains(address, ":") ? split("/", address)[1] : cidrnetmask(address),
      )],
      [for server in device.nameservers : strcontains(server, ":") ? "nameserver=[${server}]" : "nameserver=${server}"],
    ]
  ]))

  guest_info = merge(
    {
      "guestinfo.hostname" = var.machine.name
      "stealclock.enable"  = "TRUE"
    },
    var.user_data == "" ? {} : {
      "guestinfo.ignition.config.data"          = base64encode(var.user_data)
      "guestinfo.ignition.config.data.encoding" = "base64"
    },
    local.kernel_arguments == "" ? {} : {
      "guestinfo.afterburn.initrd.network-kargs" = local.kernel_arguments
    },
  )
}
