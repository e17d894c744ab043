package moduletest

// WithSearches returns changes that add adopt/, inventory/ and capacity/ to the module.
func WithSearches() []Change {
	return []Change{
		{"module.yaml", "  lookup:\n",
			"  adopt:\n    absent: ['not there']\n    creates: [example_disk]\n  inventory: {}\n  lookup:\n"},
		{"main.tf", "resource \"terraform_data\"",
			"resource \"example_disk\" \"more\" {\n  instance = example_instance.this.id\n}\n\n" +
				"resource \"terraform_data\""},
		{"adopt/import.tf", "", `variable "adopt" {
  type        = object({ provider_id = string, id = string })
  description = "Which instance is adopted."
}

data "example_instance" "adopted" {
  id = var.adopt.id != "" ? var.adopt.id : trimprefix(var.adopt.provider_id, "example://")
}

import {
  to = example_instance.this
  id = data.example_instance.adopted.id
}

check "size" {
  assert {
    condition     = data.example_instance.adopted.size == var.provider_spec.size
    error_message = "size: the instance has another."
  }
}
`},
		{"inventory/inventory.tf", "", `data "example_instances" "cluster" {
  provider = example
  cluster  = var.machine.cluster_id
}

output "inventory" {
  description = "The instances of the cluster."
  value       = [for one in data.example_instances.cluster.instances : { provider_id = "example://${one.id}", name = one.name, created = "", machine_uid = "" }]
}
`},
		{"capacity/capacity.tf", "", `data "example_type" "capacity" {
  name = var.provider_spec.size
}

output "capacity" {
  description = "What an instance of the type offers."
  value       = { cpu = data.example_type.capacity.cpu, memory_mib = data.example_type.capacity.memory }
}
`},
	}
}

func WithAdoption() []Change {
	return []Change{
		{"module.yaml", "  lookup:\n",
			"  adopt:\n    absent: ['not there']\n    creates: ['random:index/randomId:RandomId']\n  lookup:\n"},
		{"adopt/Pulumi.yaml", "", `name: example
runtime: yaml
config:
  adopt:
    type: object
resources:
  example:
    type: pulumi:providers:example
  this:
    type: example:index:Instance
    get:
      id: instances/${adopt.id}
    options:
      provider: ${example}
`},
	}
}
