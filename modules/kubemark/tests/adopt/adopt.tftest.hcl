# Runs with the files of adopt/ beside the module's. The engine cannot mock an import, so these are the Nodes that are refused.
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
  adopt = {
    provider_id = "kubemark://worker-1"
    id          = ""
  }
}

run "no_node_is_not_adopted" {
  command = plan

  override_data {
    target = data.kubectl_objects.adopted
    values = { objects = [] }
  }
  expect_failures = [data.kubectl_objects.adopted]
}

run "another_cluster_s_node_is_not_adopted" {
  command = plan

  override_data {
    target = data.kubectl_objects.adopted
    values = {
      objects = ["{\"metadata\":{\"name\":\"worker-1\",\"labels\":{\"machine-iac.io/cluster-id\":\"other\"}},\"spec\":{\"providerID\":\"kubemark://worker-1\"}}"]
    }
  }
  expect_failures = [data.kubectl_objects.adopted]
}

run "a_node_with_another_provider_id_is_not_adopted" {
  command = plan

  override_data {
    target = data.kubectl_objects.adopted
    values = {
      objects = ["{\"metadata\":{\"name\":\"worker-1\"},\"spec\":{\"providerID\":\"kubemark://worker-2\"}}"]
    }
  }
  expect_failures = [data.kubectl_objects.adopted]
}

run "a_real_node_is_not_adopted" {
  command = plan

  variables {
    adopt = {
      provider_id = "aws:///eu-west-1a/i-0"
      id          = ""
    }
  }
  override_data {
    target = data.kubectl_objects.adopted
    values = {
      objects = ["{\"metadata\":{\"name\":\"worker-1\"},\"spec\":{\"providerID\":\"aws:///eu-west-1a/i-0\"}}"]
    }
  }
  expect_failures = [data.kubectl_objects.adopted]
}
