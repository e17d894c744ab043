mock_provider "libvirt" {}

variables {
  machine = {
    name       = "worker-1"
    namespace  = "openshift-machine-api"
    uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
    cluster_id = "demo"
    labels     = {}
  }
  provider_spec = {
    domainMemory         = 2048
    domainVcpu           = 1
    ignition             = { userDataSecret = "worker-user-data" }
    volume               = { poolName = "default", baseVolumeID = "base" }
    networkInterfaceName = "default"
    uri                  = "qemu:///system"
  }
  user_data = "{\"ignition\":{\"version\":\"3.2.0\"}}"
}

run "refuses_a_libvirt_that_is_no_qemu" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "test:///default"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_transport_that_the_provider_lacks" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+libssh2://host/system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_password_in_the_uri" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+ssh://core:secret@host/system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_memory" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 0
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_fraction_of_a_mebibyte" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 512.5
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_processor" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 0
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_half_a_processor" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1.5
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_empty_pool" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_empty_base_volume" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_name_for_the_volume" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base", volumeName = "worker" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_size_that_is_no_quantity" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base", volumeSize = "32 GB" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_user_data" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = null
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_empty_name_of_the_user_data" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_places_of_user_data" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
      ignKey               = "/var/lib/libvirt/images/worker.ign"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_the_name_of_a_volume_as_ignKey" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = null
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
      ignKey               = "worker.ign"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_ignKey_that_tells_QEMU_more" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = null
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
      ignKey               = "/worker.ign,string=x"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_user_data_for_cloud_init" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
      cloudInit            = { userDataSecret = "worker-user-data" }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_access_by_ssh" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
      cloudInit            = { sshAccess = true }
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_no_network" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = ""
      uri                  = "qemu:///system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_two_names_of_the_network" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system"
      networkUUID          = "0d9f0f4f-93a9-4b37-a9cc-2a1f9e7d7a11"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_network_uuid_that_is_none" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = ""
      uri                  = "qemu:///system"
      networkUUID          = "default"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_address_without_its_prefix" {
  command = plan

  variables {
    provider_spec = {
      domainMemory            = 2048
      domainVcpu              = 1
      ignition                = { userDataSecret = "worker-user-data" }
      volume                  = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName    = "default"
      uri                     = "qemu:///system"
      networkInterfaceAddress = "192.168.126.12"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_hostname_for_all" {
  command = plan

  variables {
    provider_spec = {
      domainMemory             = 2048
      domainVcpu               = 1
      ignition                 = { userDataSecret = "worker-user-data" }
      volume                   = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName     = "default"
      uri                      = "qemu:///system"
      networkInterfaceHostname = "worker"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_user_data_that_is_no_ignition_configuration" {
  command = plan

  variables {
    user_data = "#cloud-config"
  }

  expect_failures = [var.user_data]
}

run "refuses_the_name_of_a_file_as_user_data" {
  command = plan

  variables {
    user_data = "/var/run/secrets/kubernetes.io/serviceaccount/token"
  }

  expect_failures = [var.user_data]
}

run "refuses_a_machine_whose_name_is_no_hostname" {
  command = plan

  variables {
    machine = {
      name       = join("", [for i in range(64) : "a"])
      namespace  = "openshift-machine-api"
      uid        = "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1"
      cluster_id = "demo"
      labels     = {}
    }
  }

  expect_failures = [var.machine]
}

run "refuses_a_key_of_another_folder" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+ssh://core@host/system?keyfile=/var/run/secrets/kubernetes.io/serviceaccount/token"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_way_out_of_the_folder" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+ssh://core@host/system?keyfile=/etc/libvirt-ssh/../shadow"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_an_escaped_way_out_of_the_folder" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+ssh://core@host/system?keyfile=/etc/libvirt-ssh/%2e%2e/shadow"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_socket_of_something_else" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system?socket=/run/containerd/containerd.sock"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_certificates_of_another_folder" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+tls://host/system?pkipath=/tmp/pki"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_host_that_is_not_verified" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+tls://host/system?no_verify=1"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_hosts_that_are_not_known" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+ssh://core@host/system?keyfile=/etc/libvirt-ssh/id&known_hosts_verify=ignore"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_command" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+ssh://core@host/system?command=/bin/sh"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_netcat" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+ssh://core@host/system?netcat=/bin/sh"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_password_that_is_asked_for" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+ssh://core@host/system?sshauth=ssh-password"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_what_is_no_host" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+tcp://host%0a/system"
    }
  }

  expect_failures = [var.provider_spec]
}

run "refuses_a_second_question" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+ssh://core@host/system?keyfile=/etc/libvirt-ssh/id?command=/bin/sh"
    }
  }

  expect_failures = [var.provider_spec]
}

run "takes_certificates_and_sockets_where_they_belong" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu+tls://host.example.com:16514/system?pkipath=/etc/pki/libvirt"
    }
  }
}

run "takes_a_socket_of_libvirt" {
  command = plan

  variables {
    provider_spec = {
      domainMemory         = 2048
      domainVcpu           = 1
      ignition             = { userDataSecret = "worker-user-data" }
      volume               = { poolName = "default", baseVolumeID = "base" }
      networkInterfaceName = "default"
      uri                  = "qemu:///system?socket=/run/libvirt/libvirt-sock"
    }
  }
}
