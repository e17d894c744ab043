locals {
  provider_id = "kubemark://${var.machine.uid}"
  internal_ip = cidrhost("fd6b:7562:656d::/48", parseint(substr(sha256(var.machine.uid), 0, 20), 16))

  addresses = [
    { type = "InternalIP", address = local.internal_ip },
    { type = "Hostname", address = var.machine.name },
    { type = "InternalDNS", address = "${var.machine.name}.kubemark.internal" },
  ]

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

  # What the stages for KWOK in the examples of modules/kubemark go by. A Node that turns unhealthy for good does so for ten years.
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

  # The program takes it whole: it cannot leave out taints where there are none. JSON is YAML.
  node = jsonencode({
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
}
