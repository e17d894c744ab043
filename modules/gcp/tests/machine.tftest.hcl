mock_provider "google" {}

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
    networkInterfaces      = [{ network = "demo-x7k2p-network", subnetwork = "demo-x7k2p-worker-subnet" }]
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

run "makes_the_worker_that_the_installer_asks_for" {
  command = plan

  assert {
    condition     = [google_compute_instance.this.name, google_compute_instance.this.zone, google_compute_instance.this.machine_type, google_compute_instance.this.project] == ["demo-x7k2p-worker-a-abcde", "us-central1-a", "n2-standard-4", "my-project"]
    error_message = "Name, zone, type and project are those that are asked for."
  }
  assert {
    condition     = nonsensitive(google_compute_instance.this.metadata)["user-data"] == "{\"ignition\":{\"version\":\"3.2.0\"}}"
    error_message = "Ignition finds the user data."
  }
  assert {
    condition     = google_compute_instance.this.labels == tomap({ "kubernetes-io-cluster-demo-x7k2p" = "owned", "machine-iac-io-machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "It names the Machine and its cluster."
  }
  assert {
    condition     = jsonencode([for disk in google_compute_instance.this.boot_disk[0].initialize_params : [disk.image, disk.size, disk.type]]) == jsonencode([["projects/rhcos-cloud/global/images/rhcos-9-6-gcp-x86-64", 128, "pd-ssd"]]) && google_compute_instance.this.boot_disk[0].auto_delete
    error_message = "It has the disk that is asked for."
  }
  assert {
    condition     = google_compute_instance.this.boot_disk[0].initialize_params[0].labels == google_compute_instance.this.labels
    error_message = "So does its disk."
  }
  assert {
    condition     = [for interface in google_compute_instance.this.network_interface : [interface.network, interface.subnetwork, length(interface.access_config)]] == [["projects/my-project/global/networks/demo-x7k2p-network", "projects/my-project/regions/us-central1/subnetworks/demo-x7k2p-worker-subnet", 0]]
    error_message = "It is in the subnet, without a public address."
  }
  assert {
    condition     = google_compute_instance.this.service_account[0].email == "demo-x7k2p-w@my-project.iam.gserviceaccount.com" && google_compute_instance.this.service_account[0].scopes == toset(["https://www.googleapis.com/auth/cloud-platform"])
    error_message = "It has the service account."
  }
  assert {
    condition     = google_compute_instance.this.tags == toset(["demo-x7k2p-worker"])
    error_message = "Firewalls know it by its tag."
  }
  assert {
    condition     = [google_compute_instance.this.scheduling[0].preemptible, google_compute_instance.this.scheduling[0].automatic_restart] == [false, true]
    error_message = "It is restarted when it fails."
  }
  assert {
    condition     = length(google_compute_instance.this.shielded_instance_config) == 0
    error_message = "It is shielded as Google's default is, by its image."
  }
  assert {
    condition     = length(google_compute_disk.data) + length(google_compute_instance_group_membership.control_plane) + length(google_compute_instance.this.guest_accelerator) + length(google_compute_instance.this.confidential_instance_config) + length(google_compute_instance.this.params) == 0
    error_message = "There is nothing that nobody asks for."
  }
}

run "makes_the_control_plane_machine_that_the_installer_asks_for" {
  command = plan

  variables {
    machine = {
      name       = "demo-x7k2p-master-0"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo-x7k2p"
      labels     = { "machine.openshift.io/cluster-api-machine-role" = "master", "machine.openshift.io/cluster-api-machine-type" = "master" }
    }
    provider_spec = {
      canIPForward       = false
      credentialsSecret  = { name = "gcp-cloud-credentials" }
      deletionProtection = false
      disks = [{
        autoDelete = true, boot = true, sizeGb = 128, type = "pd-ssd", labels = {}
        image      = "projects/rhcos-cloud/global/images/rhcos-9-6-gcp-x86-64"
      }]
      machineType            = "n2-standard-4"
      networkInterfaces      = [{ network = "demo-x7k2p-network", subnetwork = "demo-x7k2p-master-subnet" }]
      projectID              = "my-project"
      region                 = "us-central1"
      serviceAccounts        = [{ email = "demo-x7k2p-w@my-project.iam.gserviceaccount.com", scopes = ["https://www.googleapis.com/auth/cloud-platform"] }]
      shieldedInstanceConfig = {}
      targetPools            = []
      tags                   = ["demo-x7k2p-control-plane"]
      userDataSecret         = { name = "master-user-data" }
      zone                   = "us-central1-a"
    }
  }

  assert {
    condition     = google_compute_instance_group_membership.control_plane[0].instance_group == "demo-x7k2p-master-us-central1-a" && google_compute_instance_group_membership.control_plane[0].zone == "us-central1-a"
    error_message = "The API servers' load balancer finds it in its zone's group."
  }
  assert {
    condition     = google_compute_instance.this.tags == toset(["demo-x7k2p-control-plane"])
    error_message = "Firewalls know it by its tag."
  }
}

run "makes_a_machine_of_what_must_be_told" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "my-project"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 16, type = "pd-standard", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
    }
  }

  assert {
    condition     = google_compute_instance.this.machine_type == "n1-standard-4" && google_compute_instance.this.tags == toset(["demo-x7k2p-worker"])
    error_message = "The type and the tag have defaults."
  }
  assert {
    condition     = google_compute_instance.this.network_interface[0].network == "projects/my-project/global/networks/demo-x7k2p-network" && endswith(google_compute_instance.this.network_interface[0].subnetwork, "/demo-x7k2p-worker-subnet")
    error_message = "Network and subnet are the cluster's."
  }
  assert {
    condition     = google_compute_instance.this.boot_disk[0].initialize_params[0].image == "projects/my-project/global/images/i"
    error_message = "An image that is a name is one of the project."
  }
}

run "takes_every_field" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      canIPForward      = true
      disks = [
        { boot = true, autoDelete = true, sizeGb = 100, type = "pd-balanced", image = "projects/p/global/images/i", labels = { a = "b" }, encryptionKey = { kmsKey = { name = "k", keyRing = "r", location = "l" }, kmsKeyServiceAccount = "sa" } },
        { autoDelete = true, sizeGb = 200, type = "pd-ssd", labels = { c = "d" }, encryptionKey = { kmsKey = { name = "k", keyRing = "r", location = "l", projectID = "keys" } } },
        { autoDelete = true, sizeGb = 16, type = "pd-standard", image = "projects/p/global/images/data" },
      ]
      labels      = { team = "a" }
      gcpMetadata = [{ key = "serial-port-enable", value = "true" }, { key = "empty" }]
      networkInterfaces = [
        { network = "n", subnetwork = "s", projectID = "host-project", publicIP = true },
        { network = "m", subnetwork = "t" },
      ]
      serviceAccounts        = [{ email = "e", scopes = ["s", "t"] }]
      tags                   = ["a", "b"]
      machineType            = "n1-standard-8"
      region                 = "us-central1"
      zone                   = "us-central1-b"
      projectID              = "my-project"
      gpus                   = [{ type = "nvidia-tesla-t4", count = 2 }]
      provisioningModel      = "Spot"
      onHostMaintenance      = "Terminate"
      restartPolicy          = "Never"
      shieldedInstanceConfig = { secureBoot = "Enabled", virtualizedTrustedPlatformModule = "Disabled", integrityMonitoring = "Disabled" }
      confidentialCompute    = "Disabled"
      resourceManagerTags    = [{ parentID = "123", key = "env", value = "prod" }]
    }
  }

  assert {
    condition     = google_compute_instance.this.can_ip_forward && google_compute_instance.this.tags == toset(["a", "b"])
    error_message = "It forwards, and has its tags."
  }
  assert {
    condition     = [google_compute_instance.this.boot_disk[0].kms_key_self_link, google_compute_instance.this.boot_disk[0].disk_encryption_service_account] == ["projects/my-project/locations/l/keyRings/r/cryptoKeys/k", "sa"]
    error_message = "The boot disk is encrypted with its key."
  }
  assert {
    condition     = google_compute_instance.this.boot_disk[0].initialize_params[0].labels == tomap({ a = "b", "kubernetes-io-cluster-demo-x7k2p" = "owned", "machine-iac-io-machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "The boot disk has its labels."
  }
  assert {
    condition     = { for name, disk in google_compute_disk.data : name => [disk.size, disk.type, disk.zone] } == { demo-x7k2p-worker-a-abcde-1 = [200, "pd-ssd", "us-central1-b"], demo-x7k2p-worker-a-abcde-2 = [16, "pd-standard", "us-central1-b"] }
    error_message = "The other disks are called by their position."
  }
  assert {
    condition     = google_compute_disk.data["demo-x7k2p-worker-a-abcde-1"].disk_encryption_key[0].kms_key_self_link == "projects/keys/locations/l/keyRings/r/cryptoKeys/k" && google_compute_disk.data["demo-x7k2p-worker-a-abcde-1"].labels == tomap({ c = "d", "kubernetes-io-cluster-demo-x7k2p" = "owned", "machine-iac-io-machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "They are encrypted and labelled as well."
  }
  assert {
    condition     = google_compute_disk.data["demo-x7k2p-worker-a-abcde-2"].image == "projects/p/global/images/data" && length(google_compute_disk.data["demo-x7k2p-worker-a-abcde-2"].disk_encryption_key) == 0
    error_message = "They have their images."
  }
  assert {
    condition     = length(google_compute_instance.this.attached_disk) == 2
    error_message = "They are attached."
  }
  assert {
    condition     = google_compute_instance.this.labels == tomap({ team = "a", "kubernetes-io-cluster-demo-x7k2p" = "owned", "machine-iac-io-machine-uid" = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1" })
    error_message = "It has its labels."
  }
  assert {
    condition     = nonsensitive(google_compute_instance.this.metadata)["serial-port-enable"] == "true" && nonsensitive(google_compute_instance.this.metadata)["empty"] == ""
    error_message = "It has its metadata."
  }
  assert {
    condition     = [for interface in google_compute_instance.this.network_interface : [interface.network, interface.subnetwork, length(interface.access_config)]] == [["projects/host-project/global/networks/n", "projects/host-project/regions/us-central1/subnetworks/s", 1], ["projects/my-project/global/networks/m", "projects/my-project/regions/us-central1/subnetworks/t", 0]]
    error_message = "The first interface is in a shared network, with a public address."
  }
  assert {
    condition     = [for gpu in google_compute_instance.this.guest_accelerator : [gpu.type, gpu.count]] == [["nvidia-tesla-t4", 2]]
    error_message = "It has its graphics processors."
  }
  assert {
    condition     = [google_compute_instance.this.scheduling[0].preemptible, google_compute_instance.this.scheduling[0].provisioning_model, google_compute_instance.this.scheduling[0].automatic_restart, google_compute_instance.this.scheduling[0].on_host_maintenance] == [true, "SPOT", false, "TERMINATE"]
    error_message = "It is a Spot instance."
  }
  assert {
    condition     = [google_compute_instance.this.shielded_instance_config[0].enable_secure_boot, google_compute_instance.this.shielded_instance_config[0].enable_vtpm, google_compute_instance.this.shielded_instance_config[0].enable_integrity_monitoring] == [true, false, false]
    error_message = "It is shielded as it is asked for."
  }
  assert {
    condition     = google_compute_instance.this.params[0].resource_manager_tags == tomap({ "123/env" = "prod" }) && google_compute_instance.this.boot_disk[0].initialize_params[0].resource_manager_tags == tomap({ "123/env" = "prod" }) && google_compute_disk.data["demo-x7k2p-worker-a-abcde-1"].params[0].resource_manager_tags == tomap({ "123/env" = "prod" })
    error_message = "All that is made has the tags of the resource manager."
  }
}

run "asks_for_a_preemptible_instance" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "my-project"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 16, type = "pd-standard", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      preemptible       = true
    }
  }

  assert {
    condition     = [google_compute_instance.this.scheduling[0].preemptible, google_compute_instance.this.scheduling[0].automatic_restart] == [true, false]
    error_message = "It may be preempted, and is not restarted."
  }
}

run "does_not_restart_an_instance_that_should_stay_down" {
  command = plan

  variables {
    provider_spec = {
      machineType       = "n1-standard-4"
      credentialsSecret = { name = "c" }
      userDataSecret    = { name = "u" }
      projectID         = "my-project"
      region            = "us-central1"
      zone              = "us-central1-a"
      disks             = [{ boot = true, autoDelete = true, sizeGb = 16, type = "pd-standard", image = "i" }]
      serviceAccounts   = [{ email = "e", scopes = ["s"] }]
      restartPolicy     = "Never"
      onHostMaintenance = "Migrate"
    }
  }

  assert {
    condition     = google_compute_instance.this.scheduling[0].automatic_restart == false && google_compute_instance.this.scheduling[0].on_host_maintenance == "MIGRATE"
    error_message = "It is moved when its host is maintained, and not restarted."
  }
}

run "makes_a_confidential_instance_of_any_technology" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "my-project"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 16, type = "pd-standard", image = "i" }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      machineType         = "c2d-standard-4"
      confidentialCompute = "Enabled"
      onHostMaintenance   = "Terminate"
    }
  }

  assert {
    condition     = google_compute_instance.this.confidential_instance_config[0].enable_confidential_compute == true && google_compute_instance.this.confidential_instance_config[0].confidential_instance_type == null
    error_message = "Its memory is encrypted."
  }
}

run "makes_a_confidential_instance_of_sev" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "my-project"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 16, type = "pd-standard", image = "i" }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      machineType         = "n2d-standard-4"
      confidentialCompute = "AMDEncryptedVirtualization"
      onHostMaintenance   = "Terminate"
    }
  }

  assert {
    condition     = google_compute_instance.this.confidential_instance_config[0].confidential_instance_type == "SEV"
    error_message = "Its memory is encrypted."
  }
}

run "makes_a_confidential_instance_of_sev_snp" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "my-project"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 16, type = "pd-standard", image = "i" }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      machineType         = "n2d-standard-4"
      confidentialCompute = "AMDEncryptedVirtualizationNestedPaging"
      onHostMaintenance   = "Terminate"
    }
  }

  assert {
    condition     = google_compute_instance.this.confidential_instance_config[0].confidential_instance_type == "SEV_SNP"
    error_message = "Its memory is encrypted."
  }
}

run "makes_a_confidential_instance_of_tdx" {
  command = plan

  variables {
    provider_spec = {
      credentialsSecret   = { name = "c" }
      userDataSecret      = { name = "u" }
      projectID           = "my-project"
      region              = "us-central1"
      zone                = "us-central1-a"
      disks               = [{ boot = true, autoDelete = true, sizeGb = 16, type = "pd-standard", image = "i" }]
      serviceAccounts     = [{ email = "e", scopes = ["s"] }]
      machineType         = "c3-standard-4"
      confidentialCompute = "IntelTrustedDomainExtensions"
      onHostMaintenance   = "Terminate"
    }
  }

  assert {
    condition     = google_compute_instance.this.confidential_instance_config[0].confidential_instance_type == "TDX"
    error_message = "Its memory is encrypted."
  }
}
