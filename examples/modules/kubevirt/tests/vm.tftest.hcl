mock_provider "kubectl" {}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  provider_spec = {
    containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
    credentialsSecret = { name = "kubevirt-credentials" }
  }
  user_data = ""
}

# The golden case of the least that a MachineSet may say.
run "minimal" {
  command = plan

  assert {
    condition = yamldecode(kubectl_manifest.this.yaml_body) == {
      apiVersion = "kubevirt.io/v1"
      kind       = "VirtualMachine"
      metadata = {
        name      = "worker-1-c02a1e74f2a4"
        namespace = "demo"
        labels = {
          "cluster.x-k8s.io/cluster-name" = "demo"
          "machine-iac.io/machine-name"   = "worker-1"
          "machine-iac.io/machine-uid"    = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
        }
      }
      spec = {
        runStrategy = "Always"
        template = {
          metadata = {
            labels = {
              "cluster.x-k8s.io/cluster-name" = "demo"
              "machine-iac.io/machine-name"   = "worker-1"
              "machine-iac.io/machine-uid"    = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
            }
          }
          spec = {
            domain = {
              cpu    = { cores = 2 }
              memory = { guest = "4Gi" }
              devices = {
                disks      = [{ name = "root", disk = { bus = "virtio" } }]
                interfaces = [{ name = "default", masquerade = {} }]
              }
            }
            networks = [{ name = "default", pod = {} }]
            volumes  = [{ name = "root", containerDisk = { image = "quay.io/containerdisks/fedora:latest" } }]
          }
        }
      }
    }
    error_message = "Defaults fill what is left out, and nothing is written that was not asked for."
  }
  assert {
    condition     = length(kubectl_manifest.user_data) == 0
    error_message = "Without user data there is no Secret."
  }
  assert {
    condition     = output.provider_id == "kubevirt://worker-1-c02a1e74f2a4"
    error_message = "The provider ID is the one that KubeVirt's cloud controller writes on the Node."
  }
  assert {
    condition     = [for address in output.addresses : "${address.type} ${address.address}"] == ["Hostname worker-1-c02a1e74f2a4", "InternalDNS worker-1-c02a1e74f2a4"]
    error_message = "The guest is known by the VM's name."
  }
  assert {
    condition     = [output.instance_state, output.instance_type, output.region, output.zone] == ["Always", "2cpu-4Gi", "", ""]
    error_message = "State and size are published; there is no region and no zone."
  }
}

run "every_field" {
  variables {
    provider_spec = {
      cpu          = 8
      memory       = "32Gi"
      runStrategy  = "RerunOnFailure"
      nodeSelector = { "topology.kubernetes.io/region" = "region-a", "topology.kubernetes.io/zone" = "zone-a" }
      labels       = { team = "$${var.user_data}", "machine-iac.io/machine-uid" = "another" }
      dataVolume = {
        size             = "30Gi"
        storageClassName = "fast"
        source           = { registry = { url = "docker://quay.io/containerdisks/fedora:latest" } }
      }
      network           = { multus = "infra/workers", binding = "bridge" }
      cloudInit         = "ConfigDrive"
      credentialsSecret = { name = "kubevirt-credentials" }
      userDataSecret    = { name = "worker-user-data" }
    }
    user_data = "#cloud-config\n"
  }

  assert {
    condition = yamldecode(kubectl_manifest.this.yaml_body).spec.template.spec.domain == {
      cpu    = { cores = 8 }
      memory = { guest = "32Gi" }
      devices = {
        disks      = [{ name = "root", disk = { bus = "virtio" } }, { name = "user-data", disk = { bus = "virtio" } }]
        interfaces = [{ name = "default", bridge = {} }]
      }
    }
    error_message = "Processors, memory, disks and interface are those of the providerSpec."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.runStrategy == "RerunOnFailure"
    error_message = "The run strategy is passed on."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.template.spec.networks == [{ name = "default", multus = { networkName = "infra/workers" } }]
    error_message = "The network is the one named."
  }
  assert {
    condition = yamldecode(kubectl_manifest.this.yaml_body).spec.template.spec.volumes == [
      { name = "root", dataVolume = { name = "worker-1-c02a1e74f2a4-root" } },
      { name = "user-data", cloudInitConfigDrive = { secretRef = { name = "worker-1-c02a1e74f2a4-user-data" } } },
    ]
    error_message = "The VM boots from its DataVolume and reads user data from the Secret."
  }
  assert {
    condition = yamldecode(kubectl_manifest.this.yaml_body).spec.dataVolumeTemplates == [{
      metadata = { name = "worker-1-c02a1e74f2a4-root" }
      spec = {
        source  = { registry = { url = "docker://quay.io/containerdisks/fedora:latest" } }
        storage = { resources = { requests = { storage = "30Gi" } }, storageClassName = "fast" }
      }
    }]
    error_message = "The DataVolume belongs to the VM and is filled from its source."
  }
  assert {
    condition = yamldecode(kubectl_manifest.this.yaml_body).spec.template.spec.nodeSelector == {
      "topology.kubernetes.io/region" = "region-a"
      "topology.kubernetes.io/zone"   = "zone-a"
    }
    error_message = "The nodeSelector is passed on."
  }
  assert {
    condition     = [output.instance_state, output.instance_type, output.region, output.zone] == ["RerunOnFailure", "8cpu-32Gi", "region-a", "zone-a"]
    error_message = "State, size, region and zone are published."
  }
  assert {
    condition     = output.instance_id == kubectl_manifest.this.uid
    error_message = "The instance is known by the VM's UID."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).metadata.labels["machine-iac.io/machine-uid"] == var.machine.uid
    error_message = "Labels of the user do not hide those of the module."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.template.metadata.labels.team == "$${var.user_data}"
    error_message = "Text stays text."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.user_data[0].yaml_body).data == { userdata = "I2Nsb3VkLWNvbmZpZwo=" }
    error_message = "The Secret holds the user data."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.user_data[0].yaml_body).metadata.ownerReferences[0].uid == kubectl_manifest.this.uid
    error_message = "The Secret belongs to the VM and goes with it."
  }
  assert {
    condition     = kubectl_manifest.this.force_new == false
    error_message = "A VM that was just made is not replaced."
  }
}

# The state of the run before holds a VM with every field.
run "changes_the_run_strategy_in_place" {
  command = plan

  variables {
    provider_spec = {
      cpu          = 8
      memory       = "32Gi"
      runStrategy  = "Halted"
      nodeSelector = { "topology.kubernetes.io/region" = "region-a", "topology.kubernetes.io/zone" = "zone-a" }
      labels       = { team = "$${var.user_data}", "machine-iac.io/machine-uid" = "another" }
      dataVolume = {
        size             = "30Gi"
        storageClassName = "fast"
        source           = { registry = { url = "docker://quay.io/containerdisks/fedora:latest" } }
      }
      network           = { multus = "infra/workers", binding = "bridge" }
      cloudInit         = "ConfigDrive"
      credentialsSecret = { name = "other-credentials" }
      userDataSecret    = { name = "other-user-data" }
    }
    user_data = "#cloud-config\nlater: true\n"
  }

  assert {
    condition     = kubectl_manifest.this.force_new == false
    error_message = "KubeVirt changes the run strategy of a VM in place."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.runStrategy == "Halted"
    error_message = "The run strategy is written."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.user_data[0].yaml_body).data == { userdata = "I2Nsb3VkLWNvbmZpZwo=" }
    error_message = "User data is read at the first boot, so that later user data is left to later Machines."
  }
}

run "plans_a_replacement_when_the_size_changes" {
  command = plan

  variables {
    provider_spec = {
      cpu               = 4
      containerDisk     = { image = "quay.io/containerdisks/fedora:latest" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  assert {
    condition     = kubectl_manifest.this.force_new == true
    error_message = "A running VM keeps its processors, so the plan must not pass for an update."
  }
}

run "takes_the_other_sources_of_a_disk" {
  command = plan

  variables {
    provider_spec = {
      dataVolume        = { size = "30Gi", source = { pvc = { name = "golden", namespace = "images" } } }
      credentialsSecret = { name = "kubevirt-credentials" }
      userDataSecret    = { name = "worker-user-data" }
    }
    user_data = "#cloud-config\n"
  }

  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.dataVolumeTemplates[0].spec.source == { pvc = { name = "golden", namespace = "images" } }
    error_message = "The disk is cloned from the volume named."
  }
  assert {
    condition     = !can(yamldecode(kubectl_manifest.this.yaml_body).spec.dataVolumeTemplates[0].spec.storage.storageClassName)
    error_message = "Without a storage class the default one of the cluster is taken."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.template.spec.volumes[1].cloudInitNoCloud.secretRef.name == "worker-1-c02a1e74f2a4-user-data"
    error_message = "NoCloud is the default data source."
  }
}

run "makes_a_name_that_kubevirts_cloud_controller_accepts" {
  command = plan

  variables {
    machine = {
      name       = "a.23456789-123456789-123456789-123456789-123456789-123456789-12"
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = {}
    }
    provider_spec = {
      containerDisk     = { image = "quay.io/containerdisks/fedora:latest", imagePullSecret = "registry" }
      network           = { binding = "bridge" }
      credentialsSecret = { name = "kubevirt-credentials" }
    }
  }

  assert {
    condition     = output.provider_id == "kubevirt://a-23456789-123456789-123456789-123456789-123456789-c02a1e74f2a4"
    error_message = "A name has no dots and 63 characters at most."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.template.spec.volumes[0].containerDisk == { image = "quay.io/containerdisks/fedora:latest", imagePullSecret = "registry" }
    error_message = "The image may need a Secret to be pulled."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.template.spec.domain.devices.interfaces == [{ name = "default", bridge = {} }]
    error_message = "The Pod network can be bridged."
  }
}

run "gives_a_machine_of_the_same_name_another_vm" {
  command = plan

  variables {
    machine = {
      name       = "worker-1"
      namespace  = "openshift-machine-api"
      uid        = "0e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = {}
    }
  }

  assert {
    condition     = output.provider_id != "kubevirt://worker-1-c02a1e74f2a4"
    error_message = "A VM belongs to one Machine, whatever the Machine's name."
  }
}
