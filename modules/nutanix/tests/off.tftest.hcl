mock_provider "nutanix" {
  mock_data "nutanix_search" {
    defaults = { entities = [] }
  }
  mock_resource "nutanix_virtual_machine" {
    defaults = {
      id              = "8c7a2e90-0d3b-4ac5-bf34-2f7a3b0a1f11"
      state           = "COMPLETE"
      power_state     = "OFF"
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

run "says_that_it_is_off" {
  assert {
    condition     = output.instance_state == "OFF"
    error_message = "A virtual machine that does not run has its power state."
  }
}
