# What providerSpecs name is looked for until the virtual machine is there, and recorded with it; what they refer to by a UUID is not. In place of a
# UUID that is missing stands why, which the error of the create then repeats.
data "nutanix_search" "clusters" {
  count = var.recorded == null ? 1 : 0

  kind = "cluster"
}

data "nutanix_search" "image" {
  for_each = toset([for image in local.images : image.name if var.recorded == null && image.uuid == null])

  kind = "image"
  name = each.value
}

data "nutanix_search" "subnet" {
  for_each = toset([for subnet in local.subnets : subnet.name if var.recorded == null && subnet.uuid == null])

  kind = "subnet"
  name = each.value
}

data "nutanix_search" "project" {
  count = var.recorded == null && var.provider_spec.project.type == "name" ? 1 : 0

  kind = "project"
  name = var.provider_spec.project.name
}

data "nutanix_search" "gpus" {
  count = var.recorded == null && length(var.provider_spec.gpus) > 0 ? 1 : 0

  kind         = "gpu"
  cluster_uuid = local.cluster_uuid
}

# OpenShift's installer makes a category for a cluster, and removes what is in it when it destroys the cluster.
data "nutanix_search" "cluster_category" {
  count = var.recorded == null ? 1 : 0

  kind  = "category"
  name  = local.cluster_key
  value = "owned"
}

locals {
  # The failure domain's cluster and subnets count in place of the providerSpec's.
  failure_domain_name = try(var.provider_spec.failureDomain.name, "")
  failure_domain      = one([for domain in var.cluster.failure_domains : domain if domain.name == local.failure_domain_name])
  uuid                = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"

  element = local.failure_domain == null ? {
    uuid = var.provider_spec.cluster.type == "uuid" ? var.provider_spec.cluster.uuid : null, name = var.provider_spec.cluster.name
    } : {
    uuid = can(regex(local.uuid, local.failure_domain.compute_cluster)) ? local.failure_domain.compute_cluster : null, name = local.failure_domain.compute_cluster
  }
  clusters      = [for one in flatten(data.nutanix_search.clusters[*].entities) : jsondecode(one)]
  centrals      = [for one in local.clusters : one.name if one.prism_central]
  region        = var.recorded != null ? var.recorded.region : length(local.centrals) == 1 ? local.centrals[0] : ""
  element_uuids = [for one in local.clusters : one.uuid if one.name == local.element.name]
  cluster_uuid = (
    var.recorded != null ? var.recorded.cluster_uuid :
    local.failure_domain_name != "" && local.failure_domain == null ? "the Infrastructure has no failure domain ${local.failure_domain_name}" :
    local.element.uuid != null ? local.element.uuid :
    length(local.element_uuids) == 1 ? local.element_uuids[0] :
    length(local.element_uuids) == 0 ? "no cluster is called ${local.element.name}" : "several clusters are called ${local.element.name}"
  )

  subnets = local.failure_domain == null ? [
    for subnet in var.provider_spec.subnets : { uuid = subnet.type == "uuid" ? subnet.uuid : null, name = subnet.name }
    ] : [
    for network in local.failure_domain.networks : { uuid = can(regex(local.uuid, network)) ? network : null, name = network }
  ]
  found_subnets = { for name, search in data.nutanix_search.subnet : name => [for one in search.entities : jsondecode(one)] }
  # Several clusters may have a subnet of one name. A subnet of a VPC is on no cluster.
  own_subnets = { for name, found in local.found_subnets : name => [
    for one in found : one.uuid if length(found) == 1 || lower(lookup(one, "cluster_uuid", "")) == lower(local.cluster_uuid)
  ] }
  subnet_uuids = var.recorded != null ? var.recorded.subnet_uuids : [for subnet in local.subnets : (
    subnet.uuid != null ? subnet.uuid :
    length(local.own_subnets[subnet.name]) == 1 ? local.own_subnets[subnet.name][0] :
    length(local.found_subnets[subnet.name]) == 0 ? "no subnet is called ${subnet.name}" :
    "several subnets are called ${subnet.name}, and not exactly one of them is on the cluster"
  )]

  # The system disk's, then those of other disks; a disk without one has a UUID that is not used.
  images = [for image in concat([var.provider_spec.image], [for disk in var.provider_spec.dataDisks : disk.dataSource]) : {
    uuid = image == null ? "" : image.type == "uuid" ? image.uuid : null, name = try(image.name, null)
  }]
  found_images = { for name, search in data.nutanix_search.image : name => search.entities }
  image_uuids = var.recorded != null ? var.recorded.image_uuids : [for image in local.images : (
    image.uuid != null ? image.uuid :
    length(local.found_images[image.name]) == 1 ? jsondecode(local.found_images[image.name][0]).uuid :
    length(local.found_images[image.name]) == 0 ? "no image is called ${image.name}" : "several images are called ${image.name}"
  )]
  image_uuid   = local.image_uuids[0]
  source_uuids = slice(local.image_uuids, 1, length(local.image_uuids))

  found_projects = flatten(data.nutanix_search.project[*].entities)
  project_uuid = (
    var.recorded != null ? var.recorded.project_uuid :
    var.provider_spec.project.type == "uuid" ? var.provider_spec.project.uuid :
    var.provider_spec.project.type == "" ? null :
    length(local.found_projects) == 1 ? jsondecode(local.found_projects[0]).uuid :
    length(local.found_projects) == 0 ? "no project is called ${var.provider_spec.project.name}" : "several projects are called ${var.provider_spec.project.name}"
  )

  free_gpus = [for one in flatten(data.nutanix_search.gpus[*].entities) : jsondecode(one)]
  gpus = [for gpu in var.provider_spec.gpus : try(
    [for free in local.free_gpus : { vendor = free.vendor, mode = free.mode, device_id = free.device_id }
    if gpu.type == "Name" ? free.name == gpu.name : free.device_id == gpu.deviceID][0],
    { vendor = "no unused GPU of the cluster is ${gpu.type == "Name" ? "called ${gpu.name}" : "of the device ID ${gpu.deviceID}"}", mode = "", device_id = 0 },
  )]

  cluster_key      = "kubernetes-io-cluster-${var.machine.cluster_id}"
  cluster_category = [for one in flatten(data.nutanix_search.cluster_category[*].entities) : jsondecode(one)]
  # A virtual machine has one value of a key, the last one's.
  categories = { for key, values in { for category in var.provider_spec.categories : category.key => category.value... } : key => values[length(values) - 1] if key != local.cluster_key }
}
