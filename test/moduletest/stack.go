package moduletest

import (
	"encoding/base64"
	"maps"
	"strings"
)

// Stack returns a stack with a lookup, locals, checks and every optional part.
func Stack() map[string]string { return maps.Clone(stackFiles) }

var stackFiles = map[string]string{
	"module.yaml": strings.NewReplacer(
		"spec:\n", "spec:\n  engine: Pulumi\n",
		"type: example_instance", "type: 'example:index/instance:Instance'",
		"  providerSpecs:\n    - apiVersions: [example.io/v1, example.io/v1beta1]\n"+
			"      kind: ExampleProviderSpec\n", "",
	).Replace(moduleFiles["module.yaml"]),
	"variables.tf": moduleFiles["variables.tf"],
	"locals.tf": `locals {
  provider_id = "example://${var.machine.uid}"
  labels      = merge({ for name, value in var.machine.labels : name => value if value != "" }, { id = local.provider_id })
}

locals {
  disks = [for disk in var.provider_spec.disks : { size = disk.gib * 1024 }]
}
`,
	"checks.tf": `check "disks" {
  assert {
    condition     = length(var.provider_spec.disks) > 0
    error_message = "providerSpec.disks: there are none."
  }
}
`,
	"Pulumi.yaml": `name: example
description: Makes one instance.
runtime: yaml
config:
  machine:
    type: object
  provider_spec:
    type: object
  locals:
    type: object
  user_data:
    type: string
    secret: true
variables:
  image:
    fn::invoke:
      function: example:getImage
      arguments: {name: "${provider_spec.size}"}
      return: id
resources:
  this:
    type: example:Instance
    properties:
      name: ${machine.name}
      image: ${image}
      labels: ${locals.labels}
      userData:
        fn::secret: ${user_data}
    options:
      additionalSecretOutputs: [userDataHash]
      replacementTrigger: ${provider_spec.size}
  note:
    type: random:RandomId
    properties:
      byteLength: 4
outputs:
` + StackOutputs(Outputs...),
	"lookup/Pulumi.yaml": `name: example
runtime: yaml
config:
  machine:
    type: object
resources:
  example:
    type: pulumi:providers:example
  this:
    type: example:index:Instance
    get:
      id: instances/${machine.name}
    options:
      provider: ${example}
`,
	"sdks/example/example-1.2.3.yaml": `packageDeclarationVersion: 1
name: terraform-provider
version: 3.128.0
parameterization:
  name: example
  version: 1.2.3
  value: ` +
		base64.StdEncoding.EncodeToString([]byte(
			`{"remote":{"url":"registry.opentofu.org/acme/example","version":"1.2.3"},"includes":["example_instance"]}`)) + "\n",
	"sdks/random.yaml":         "packageDeclarationVersion: 1\nname: random\nversion: 4.16.0\n",
	"README.md":                "# example\n",
	"examples/machineset.yaml": "kind: MachineSet\n",
	"templates/user-data.txt":  "hello\n",
}

func StackOutputs(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		text.WriteString("  " + name + ": ${this.id}\n")
	}
	return text.String()
}
