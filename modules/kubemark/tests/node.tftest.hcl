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
    credentialsSecret = { name = "kubemark-credentials" }
  }
  user_data = ""
}

run "makes_a_node_that_kwok_runs" {
  command = plan

  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).metadata.name == "worker-1"
    error_message = "The Node has the Machine's name."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).metadata.annotations["kwok.x-k8s.io/node"] == "fake"
    error_message = "Without the annotation KWOK leaves the Node alone."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.providerID == output.provider_id
    error_message = "Node and Machine have one provider ID."
  }
  assert {
    condition     = output.provider_id == "kubemark://5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    error_message = "The provider ID is made from the Machine's UID."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).metadata.labels["machine-iac.io/machine-uid"] == var.machine.uid
    error_message = "A lookup knows the Node by the Machine's UID."
  }
  assert {
    condition = yamldecode(kubectl_manifest.this.yaml_body).status.capacity == {
      cpu = "4", memory = "16Gi", pods = "110"
    }
    error_message = "A Node that names no capacity has the default one."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).status.allocatable == yamldecode(kubectl_manifest.this.yaml_body).status.capacity
    error_message = "All of the capacity can be allocated."
  }
  assert {
    condition     = !can(yamldecode(kubectl_manifest.this.yaml_body).spec.taints)
    error_message = "A Node without taints does not claim the list, which other controllers write."
  }
  assert {
    condition     = !contains(keys(yamldecode(kubectl_manifest.this.yaml_body).metadata.labels), "topology.kubernetes.io/zone")
    error_message = "A Node without a zone has no label for it."
  }
}

run "answers_the_outputs_of_the_contract" {
  command = plan

  variables {
    provider_spec = {
      instanceType      = "hollow-large"
      region            = "region-a"
      zone              = "zone-a"
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  assert {
    condition     = output.addresses == yamldecode(kubectl_manifest.this.yaml_body).status.addresses
    error_message = "Machine and Node have the same addresses."
  }
  assert {
    condition     = [for address in output.addresses : address.type] == ["InternalIP", "Hostname", "InternalDNS"]
    error_message = "The Node has one address of each type."
  }
  assert {
    condition     = startswith(output.addresses[0].address, "fd6b:7562:656d:")
    error_message = "The address lies in the module's private range."
  }
  assert {
    condition     = [output.instance_state, output.instance_type, output.region, output.zone] == ["Running", "hollow-large", "region-a", "zone-a"]
    error_message = "State, type, region and zone are published."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).metadata.labels["topology.kubernetes.io/zone"] == "zone-a"
    error_message = "The zone is a label of the Node."
  }
}

run "gives_another_machine_another_address" {
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
    condition     = output.addresses[0].address == "fd6b:7562:656d:fb60:eb75:984:fa6:dc59"
    error_message = "The address is made from the Machine's UID and never changes."
  }
}

run "keeps_what_a_user_wrote_as_data" {
  command = plan

  variables {
    provider_spec = {
      labels = {
        "kubernetes.io/hostname" = "someone-else"
        team                     = "$${var.user_data}\n---\nkind: Secret"
      }
      taints            = [{ key = "dedicated", value = "x", effect = "NoSchedule" }]
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).metadata.labels["kubernetes.io/hostname"] == "worker-1"
    error_message = "Labels of the user do not hide those of the module."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).metadata.labels.team == "$${var.user_data}\n---\nkind: Secret"
    error_message = "Text stays text."
  }
  assert {
    condition     = yamldecode(kubectl_manifest.this.yaml_body).spec.taints == [{ key = "dedicated", value = "x", effect = "NoSchedule" }]
    error_message = "Taints are passed on."
  }
}

run "turns_unhealthy_in_turns" {
  command = plan

  variables {
    provider_spec = {
      turnUnhealthyPeriodically = true
      healthyDuration           = "40s"
      unhealthyDuration         = "5s"
      credentialsSecret         = { name = "kubemark-credentials" }
    }
  }

  assert {
    condition = yamldecode(kubectl_manifest.this.yaml_body).metadata.annotations == {
      "kwok.x-k8s.io/node" = "fake", "machine-iac.io/healthy-for" = "40s", "machine-iac.io/unhealthy-for" = "5s"
    }
    error_message = "The stages for KWOK go by the annotations."
  }
}

run "turns_unhealthy_for_good" {
  command = plan

  variables {
    provider_spec = {
      turnUnhealthyAfter = true
      unhealthyDuration  = "40s"
      credentialsSecret  = { name = "kubemark-credentials" }
    }
  }

  assert {
    condition = yamldecode(kubectl_manifest.this.yaml_body).metadata.annotations == {
      "kwok.x-k8s.io/node" = "fake", "machine-iac.io/healthy-for" = "40s", "machine-iac.io/unhealthy-for" = "87600h"
    }
    error_message = "Without healthyDuration it turns after unhealthyDuration, as the manuals write it."
  }
}

run "made" {
  assert {
    condition     = kubectl_manifest.this.force_new == false
    error_message = "A Node that was just made is not replaced."
  }
}

run "changes_labels_and_taints_in_place" {
  command = plan

  variables {
    provider_spec = {
      labels            = { team = "b" }
      taints            = [{ key = "dedicated", effect = "NoSchedule" }]
      zone              = "zone-b"
      instanceType      = "other"
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  assert {
    condition     = kubectl_manifest.this.force_new == false
    error_message = "Whatever the API server lets change is changed in place."
  }
}

run "plans_a_replacement_when_capacity_changes" {
  command = plan

  variables {
    provider_spec = {
      cpu               = 8
      credentialsSecret = { name = "kubemark-credentials" }
    }
  }

  assert {
    condition     = kubectl_manifest.this.force_new == true
    error_message = "The API server ignores a new capacity, so the plan must not pass for an update."
  }
}
