output "provider_id" {
  description = "The providerID as the AWS cloud provider writes it: the zone and the instance's id."
  value       = "aws:///${aws_instance.this.availability_zone}/${aws_instance.this.id}"
}

output "instance_id" {
  description = "The instance's id."
  value       = aws_instance.this.id
}

output "instance_state" {
  description = "EC2's word for the instance's state, for example running or stopped."
  value       = aws_instance.this.instance_state
}

output "addresses" {
  description = "The addresses of the instance's network interface, IPv6 first, and its names."
  value = concat(
    [for address in aws_instance.this.ipv6_addresses : { type = "InternalIP", address = address }],
    [for address in compact(concat([aws_instance.this.private_ip], sort(aws_instance.this.secondary_private_ips))) : { type = "InternalIP", address = address }],
    [for address in compact([aws_instance.this.public_ip]) : { type = "ExternalIP", address = address }],
    [for name in local.internal_dns : { type = "InternalDNS", address = name }],
    [for name in compact([aws_instance.this.private_dns]) : { type = "Hostname", address = name }],
    [for name in compact([aws_instance.this.public_dns]) : { type = "ExternalDNS", address = name }],
  )
}

output "instance_type" {
  description = "The instance type."
  value       = aws_instance.this.instance_type
}

output "region" {
  description = "The region."
  value       = var.provider_spec.placement.region

  depends_on = [aws_instance.this]
}

output "zone" {
  description = "The availability zone."
  value       = aws_instance.this.availability_zone
}

output "interruptible" {
  description = "Whether EC2 may end the instance to have its capacity back: it is a Spot instance."
  value       = aws_instance.this.instance_lifecycle == "spot"
}

output "dedicated_host" {
  description = "The host that was allocated for the instance alone, as AWSMachineProviderStatus has it; null without one."
  value       = one([for host in aws_ec2_host.dedicated : { id = host.id }])

  depends_on = [aws_instance.this]
}

output "recorded" {
  description = "What filters and names have found for the instance."
  value = {
    subnet_id          = local.subnet_id
    host_zone          = one(aws_ec2_host.dedicated[*].availability_zone)
    security_groups    = local.asked_groups
    security_group_ids = local.security_group_ids
    load_balancers     = sort(local.network_load_balancers)
    domain_names       = local.domain_names
  }

  depends_on = [aws_instance.this]
}
