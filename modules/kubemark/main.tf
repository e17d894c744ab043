locals {
  internal_ip = cidrhost("fd6b:7562:656d::/48", parseint(substr(sha256(var.machine.uid), 0, 20), 16))

  # What an adopted Node came with, as adopt/import.tf writes it; null for a Node that was made here.
  adopted = terraform_data.made_with.input == null ? jsondecode(terraform_data.made_with.id) : null

  provider_id = local.adopted == null ? "kubemark://${var.machine.uid}" : try(local.adopted.provider_id, "")
  addresses = [for address in local.adopted != null ? try(local.adopted.addresses, []) : [
    { type = "InternalIP", address = local.internal_ip },
    { type = "Hostname", address = var.machine.name },
    { type = "InternalDNS", address = "${var.machine.name}.kubemark.internal" },
  ] : address]

  # The API server takes a Node's status when the Node is made, and ignores it in every later write of the Node.
  fixed = {
    cpu          = tostring(var.provider_spec.cpu)
    memory       = var.provider_spec.memory
    pods         = tostring(var.provider_spec.pods)
    architecture = var.provider_spec.architecture
  }
  capacity = { for name in ["cpu", "memory", "pods"] : name => local.fixed[name] }

  placement = {
    "topology.kubernetes.io/region" = var.provider_spec.region
    "topology.kubernetes.io/zone"   = var.provider_spec.zone
  }
  labels = merge(
    var.provider_spec.labels,
    { for name, value in local.placement : name => value if value != "" },
    {
      "kubernetes.io/arch"               = var.provider_spec.architecture
      "kubernetes.io/hostname"           = var.machine.name
      "kubernetes.io/os"                 = "linux"
      "machine-iac.io/machine-uid"       = var.machine.uid
      "node.kubernetes.io/instance-type" = var.provider_spec.instanceType
    },
    can(regex("^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$", var.machine.cluster_id)) ? { "machine-iac.io/cluster-id" = var.machine.cluster_id } : {},
    var.cluster.installation == "" ? {} : { "machine-iac.io/installation" = var.cluster.installation },
  )

  # What the stages for KWOK in examples/ go by. A Node that turns unhealthy for good does so for ten years.
  health = (
    var.provider_spec.turnUnhealthyAfter ? {
      "machine-iac.io/healthy-for"   = can(regex("[1-9]", var.provider_spec.healthyDuration)) ? var.provider_spec.healthyDuration : var.provider_spec.unhealthyDuration
      "machine-iac.io/unhealthy-for" = "87600h"
    } :
    var.provider_spec.turnUnhealthyPeriodically ? {
      "machine-iac.io/healthy-for"   = var.provider_spec.healthyDuration
      "machine-iac.io/unhealthy-for" = var.provider_spec.unhealthyDuration
    } : {}
  )
}

# Remembers what the Node was made with, or in its ID what it came with.
resource "terraform_data" "made_with" {
  input = local.fixed

  lifecycle {
    ignore_changes = [input]
  }
}

resource "kubectl_manifest" "this" {
  yaml_body = yamlencode({
    apiVersion = "v1"
    kind       = "Node"
    metadata = {
      name        = var.machine.name
      labels      = local.labels
      annotations = merge(local.health, { "kwok.x-k8s.io/node" = "fake" })
    }
    spec = merge(
      { providerID = local.provider_id },
      length(var.provider_spec.taints) == 0 ? {} : { taints = var.provider_spec.taints },
    )
    status = {
      addresses   = local.addresses
      allocatable = local.capacity
      capacity    = local.capacity
      nodeInfo    = { architecture = var.provider_spec.architecture, operatingSystem = "linux" }
    }
  })

  # A change of what is fixed plans a replacement, which the operator refuses, rather than an update that would do nothing.
  force_new = try(local.adopted.fixed, terraform_data.made_with.output) != local.fixed

  # KWOK, the node lifecycle controller and NodeLink write these; what they write is not drift.
  ignore_fields = ["metadata.annotations", "metadata.labels", "spec.taints"]

  # The schema would be fetched at every run, and the API server checks the Node anyhow.
  validate_schema = false
}
