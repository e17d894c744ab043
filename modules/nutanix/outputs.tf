output "provider_id" {
  description = "The providerID as OpenShift's provider writes it."
  value       = "nutanix://${nutanix_virtual_machine.this.id}"
}

output "instance_id" {
  description = "The UUID of the virtual machine."
  value       = nutanix_virtual_machine.this.id
}

output "instance_state" {
  description = "The state of what was requested, COMPLETE or ERROR; of a virtual machine that does not run, its power state."
  value = (
    nutanix_virtual_machine.this.state == "COMPLETE" && !contains(["ON", ""], coalesce(nutanix_virtual_machine.this.power_state, "ON"))
    ? nutanix_virtual_machine.this.power_state : nutanix_virtual_machine.this.state
  )
}

output "addresses" {
  description = "What Prism Central knows of its addresses, without those of link-local version 4, and its names."
  value = concat(
    [for address in sort(distinct([
      for endpoint in flatten(nutanix_virtual_machine.this.nic_list_status[*].ip_endpoint_list) : endpoint.ip
      if coalesce(endpoint.ip, " ") != " " && !startswith(coalesce(endpoint.ip, " "), "169.254.")
    ])) : { type = "InternalIP", address = address }],
    [
      { type = "InternalDNS", address = nutanix_virtual_machine.this.name },
      { type = "Hostname", address = nutanix_virtual_machine.this.name },
    ],
  )
}

output "instance_type" {
  description = "The hypervisor, as OpenShift's provider has it."
  value       = nutanix_virtual_machine.this.hypervisor_type == null ? "" : nutanix_virtual_machine.this.hypervisor_type
}

output "region" {
  description = "The name of the Prism Central, as OpenShift's provider has it; empty where there is not just one."
  value       = local.region

  depends_on = [nutanix_virtual_machine.this]
}

output "zone" {
  description = "The name of the cluster, a Prism Element."
  value       = nutanix_virtual_machine.this.cluster_name == null ? "" : nutanix_virtual_machine.this.cluster_name
}

output "recorded" {
  description = "What was found by name when the virtual machine was made."
  value = {
    cluster_uuid = local.cluster_uuid
    subnet_uuids = local.subnet_uuids
    image_uuids  = local.image_uuids
    project_uuid = local.project_uuid
    region       = local.region
  }

  depends_on = [nutanix_virtual_machine.this]
}
