mock_provider "google" {
  mock_resource "google_compute_instance" {
    defaults = {
      instance_id    = "1234567890123456789"
      current_status = "RUNNING"
      self_link      = "https://www.googleapis.com/compute/v1/projects/my-project/zones/us-central1-a/instances/demo-x7k2p-worker-a-abcde"
    }
  }
}

variables {
  machine = {
    name       = "demo-x7k2p-worker-a-abcde"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo-x7k2p"
    labels     = {}
  }
  # As OpenShift's installer writes it for a worker.
  provider_spec = {
    canIPForward       = false
    credentialsSecret  = { name = "gcp-cloud-credentials" }
    deletionProtection = false
    disks = [{
      autoDelete = true, boot = true, sizeGb = 128, type = "pd-ssd", labels = {}
      image      = "projects/rhcos-cloud/global/images/rhcos-9-6-gcp-x86-64"
    }]
    machineType            = "n2-standard-4"
    networkInterfaces      = [{ publicIP = true, network = "demo-x7k2p-network", subnetwork = "demo-x7k2p-worker-subnet" }]
    projectID              = "my-project"
    region                 = "us-central1"
    serviceAccounts        = [{ email = "demo-x7k2p-w@my-project.iam.gserviceaccount.com", scopes = ["https://www.googleapis.com/auth/cloud-platform"] }]
    shieldedInstanceConfig = {}
    tags                   = ["demo-x7k2p-worker"]
    userDataSecret         = { name = "worker-user-data" }
    zone                   = "us-central1-a"
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
  cluster   = {}
}

run "answers_the_outputs_of_the_contract" {
  assert {
    condition     = output.provider_id == "gce://my-project/us-central1-a/demo-x7k2p-worker-a-abcde"
    error_message = "The providerID is written as the cloud provider writes it."
  }
  assert {
    condition     = [output.instance_id, output.instance_state, output.instance_type, output.region, output.zone] == ["demo-x7k2p-worker-a-abcde", "RUNNING", "n2-standard-4", "us-central1", "us-central1-a"]
    error_message = "Id, state, type, region and zone are published."
  }
  assert {
    condition     = !output.interruptible && length(output.outlives) == 0
    error_message = "It is not interrupted, and leaves nothing."
  }
  assert {
    condition     = [for address in output.addresses : address.type] == ["InternalIP", "InternalIP", "ExternalIP", "InternalDNS", "InternalDNS", "InternalDNS", "Hostname"]
    error_message = "There is an address of each kind."
  }
  assert {
    condition     = [for address in output.addresses : address.address if contains(["InternalDNS", "Hostname"], address.type)] == ["demo-x7k2p-worker-a-abcde.us-central1-a.c.my-project.internal", "demo-x7k2p-worker-a-abcde.c.my-project.internal", "demo-x7k2p-worker-a-abcde", "demo-x7k2p-worker-a-abcde"]
    error_message = "The names are those that certificates of Nodes are approved by."
  }
  assert {
    condition     = [for address in slice(output.addresses, 0, 3) : address.address] == [google_compute_instance.this.network_interface[0].network_ip, google_compute_instance.this.network_interface[0].ipv6_address, google_compute_instance.this.network_interface[0].access_config[0].nat_ip]
    error_message = "The addresses are the interface's."
  }
}

run "refuses_another_machine_type" {
  command = plan

  variables {
    provider_spec = {
      canIPForward       = false
      credentialsSecret  = { name = "gcp-cloud-credentials" }
      deletionProtection = false
      disks = [{
        autoDelete = true, boot = true, sizeGb = 128, type = "pd-ssd", labels = {}
        image      = "projects/rhcos-cloud/global/images/rhcos-9-6-gcp-x86-64"
      }]
      machineType            = "n2-standard-8"
      networkInterfaces      = [{ network = "demo-x7k2p-network", subnetwork = "demo-x7k2p-worker-subnet" }]
      projectID              = "my-project"
      region                 = "us-central1"
      serviceAccounts        = [{ email = "demo-x7k2p-w@my-project.iam.gserviceaccount.com", scopes = ["https://www.googleapis.com/auth/cloud-platform"] }]
      shieldedInstanceConfig = {}
      tags                   = ["demo-x7k2p-worker"]
      userDataSecret         = { name = "worker-user-data" }
      zone                   = "us-central1-a"
    }
  }

  expect_failures = [terraform_data.made_with]
}

run "leaves_other_user_data_to_later_machines" {
  command = plan

  variables {
    user_data = "{}"
  }

  assert {
    condition     = strcontains(nonsensitive(google_compute_instance.this.metadata)["user-data"], "3.2.0")
    error_message = "What has booted reads nothing of it."
  }
}

run "is_the_same_without_its_user_data" {
  command = plan

  variables {
    user_data = ""
  }

  assert {
    condition     = strcontains(nonsensitive(google_compute_instance.this.metadata)["user-data"], "3.2.0")
    error_message = "What has booted reads nothing of it."
  }
}
