mock_provider "nutanix" {
  mock_data "nutanix_search" {
    defaults = { entities = [] }
  }
  mock_resource "nutanix_virtual_machine" {
    defaults = {
      id              = "8c7a2e90-0d3b-4ac5-bf34-2f7a3b0a1f11"
      state           = "COMPLETE"
      power_state     = "ON"
      hypervisor_type = "AHV"
      cluster_name    = "pe-1"
      nic_list_status = [
        {
          ip_endpoint_list                 = [{ ip = "192.168.1.20", type = "LEARNED" }, { ip = "169.254.3.4", type = "LEARNED" }]
          floating_ip                      = ""
          is_connected                     = "true"
          mac_address                      = ""
          model                            = ""
          network_function_chain_reference = {}
          network_function_nic_type        = ""
          nic_type                         = ""
          num_queues                       = 0
          subnet_name                      = ""
          subnet_uuid                      = ""
          uuid                             = ""
        },
        {
          ip_endpoint_list                 = [{ ip = "10.0.0.7", type = "ASSIGNED" }]
          floating_ip                      = ""
          is_connected                     = "true"
          mac_address                      = ""
          model                            = ""
          network_function_chain_reference = {}
          network_function_nic_type        = ""
          nic_type                         = ""
          num_queues                       = 0
          subnet_name                      = ""
          subnet_uuid                      = ""
          uuid                             = ""
        },
      ]
    }
  }
}

variables {
  machine = {
    name       = "demo-x7k2p-worker-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = {}
  }
  # As OpenShift's installer writes it.
  provider_spec = {
    bootType          = ""
    categories        = null
    cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
    credentialsSecret = { name = "nutanix-credentials" }
    image             = { type = "name", name = "demo-x7k2p-rhcos" }
    memorySize        = "16Gi"
    project           = { type = "" }
    subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
    systemDiskSize    = "120Gi"
    userDataSecret    = { name = "worker-user-data" }
    vcpuSockets       = 4
    vcpusPerSocket    = 1
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

override_data {
  target = data.nutanix_search.image
  values = { entities = ["{\"uuid\":\"ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c\",\"name\":\"demo-x7k2p-rhcos\"}"] }
}

override_data {
  target = data.nutanix_search.clusters
  values = { entities = ["{\"uuid\":\"0005b6f1-8f43-a0f2-02b7-3cecef193712\",\"name\":\"pe-1\",\"prism_central\":false}", "{\"uuid\":\"9a1e8a3e-0000-4b00-9b00-000000000001\",\"name\":\"pc-1\",\"prism_central\":true}"] }
}

run "makes_a_machine" {

  assert {
    condition     = nutanix_virtual_machine.this.name == "demo-x7k2p-worker-abcde"
    error_message = "It is there."
  }
  assert {
    condition = jsonencode(output.recorded) == jsonencode({
      cluster_uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712", image_uuids = ["ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c"], project_uuid = null, region = "pc-1"
      subnet_uuids = ["c7938dc6-7659-453e-a688-e26020c68e43"]
    })
    error_message = "What was found by name is recorded with the virtual machine."
  }
}

run "answers_the_outputs_of_the_contract" {

  assert {
    condition     = output.provider_id == "nutanix://8c7a2e90-0d3b-4ac5-bf34-2f7a3b0a1f11" && output.instance_id == "8c7a2e90-0d3b-4ac5-bf34-2f7a3b0a1f11"
    error_message = "The providerID is the UUID, as OpenShift's provider writes it."
  }
  assert {
    condition     = jsonencode(output.addresses) == jsonencode([{ type = "InternalIP", address = "10.0.0.7" }, { type = "InternalIP", address = "192.168.1.20" }, { type = "InternalDNS", address = "demo-x7k2p-worker-abcde" }, { type = "Hostname", address = "demo-x7k2p-worker-abcde" }])
    error_message = "Addresses are sorted, and without those of link-local."
  }
  assert {
    condition     = [output.instance_type, output.region, output.zone, output.instance_state] == ["AHV", "pc-1", "pe-1", "COMPLETE"]
    error_message = "Labels are those of OpenShift's provider."
  }
}

run "leaves_other_user_data_to_later_machines" {
  command = plan

  variables {
    user_data = "{\"ignition\":{\"version\":\"3.4.0\"}}"
  }

  assert {
    condition     = strcontains(base64decode(nonsensitive(nutanix_virtual_machine.this.guest_customization_cloud_init_user_data)), "3.2.0")
    error_message = "A guest that has booted reads nothing of it."
  }
}

run "is_the_same_without_its_user_data" {
  command = plan

  variables {
    user_data = ""
  }

  assert {
    condition     = strcontains(base64decode(nonsensitive(nutanix_virtual_machine.this.guest_customization_cloud_init_user_data)), "3.2.0")
    error_message = "A guest that has booted reads nothing of it."
  }
}

run "is_the_same_without_its_image" {
  command = plan

  override_data {
    target = data.nutanix_search.image
    values = { entities = [] }
  }

  override_data {
    target = data.nutanix_search.clusters
    values = { entities = [] }
  }

  assert {
    condition     = nutanix_virtual_machine.this.disk_list[0].data_source_reference.uuid == "ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c"
    error_message = "What it was made of may be gone."
  }
}

run "reads_nothing_by_name_once_it_is_there" {
  command = plan

  variables {
    recorded = {
      cluster_uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712", image_uuids = ["ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c"], project_uuid = null, region = "pc-1"
      subnet_uuids = ["c7938dc6-7659-453e-a688-e26020c68e43"]
    }
  }

  assert {
    condition     = 0 == length(data.nutanix_search.clusters) + length(data.nutanix_search.image) + length(data.nutanix_search.cluster_category)
    error_message = "The image and the rest may be gone."
  }
  assert {
    condition     = output.region == "pc-1"
    error_message = "The region is what was recorded."
  }
}

run "refuses_a_disk_that_was_not_recorded" {
  command = plan

  variables {
    recorded = {
      cluster_uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712", image_uuids = ["ea05d5d3-8f1f-4e0c-9a52-2c5cbdb1cb9c"], project_uuid = null, region = "pc-1"
      subnet_uuids = ["c7938dc6-7659-453e-a688-e26020c68e43"]
    }
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      dataDisks         = [{ diskSize = "10Gi", dataSource = { type = "name", name = "data" } }]
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [terraform_data.made_with]
}

run "refuses_another_size" {
  command = plan

  variables {
    provider_spec = {
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 8
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [terraform_data.made_with]
}

run "refuses_other_categories" {
  command = plan

  variables {
    provider_spec = {
      categories        = [{ key = "AppType", value = "a" }]
      cluster           = { type = "uuid", uuid = "0005b6f1-8f43-a0f2-02b7-3cecef193712" }
      credentialsSecret = { name = "nutanix-credentials" }
      image             = { type = "name", name = "demo-x7k2p-rhcos" }
      memorySize        = "16Gi"
      subnets           = [{ type = "uuid", uuid = "c7938dc6-7659-453e-a688-e26020c68e43" }]
      systemDiskSize    = "120Gi"
      userDataSecret    = { name = "worker-user-data" }
      vcpuSockets       = 4
      vcpusPerSocket    = 1
    }
  }

  expect_failures = [terraform_data.made_with]
}

run "makes_a_machine_without_a_region" {
  command = plan
  override_data {
    target = data.nutanix_search.clusters
    values = { entities = ["{\"uuid\":\"u1\",\"name\":\"pc-1\",\"prism_central\":true}", "{\"uuid\":\"u2\",\"name\":\"pc-2\",\"prism_central\":true}"] }
  }

  assert {
    condition     = output.region == ""
    error_message = "Nobody guesses which of two Prism Centrals it is."
  }
}
