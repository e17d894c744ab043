// Package moduletest provides a valid provider module and a valid stack for tests to edit.
package moduletest

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// Outputs are the outputs that the contract requires.
var Outputs = []string{"provider_id", "instance_id", "instance_state", "addresses", "instance_type", "region", "zone"}

// Module returns a provider module with a lookup, a second kind version and every optional part.
func Module() map[string]string { return maps.Clone(moduleFiles) }

var moduleFiles = map[string]string{
	"module.yaml": `apiVersion: machine-iac.io/v1alpha1
kind: Module
metadata:
  name: example
spec:
  providerSpecs:
    - apiVersions: [example.io/v1, example.io/v1beta1]
      kind: ExampleProviderSpec
  credentials:
    keys:
      - key: token
        env: EXAMPLE_TOKEN
      - key: region
        env: EXAMPLE_REGION
        optional: true
        public: true
  environment:
    - name: EXAMPLE_QUIET
      value: "true"
  lookup:
    absent:
      - 'no such instance'
  capacity:
    path: size
    instanceTypes:
      - name: small
        cpu: "2"
        memory: 4Gi
  identity:
    - {type: example_instance, machineUID: {path: [tags, uid]}}
`,
	"terraform.tf": `terraform {
  required_version = ">= 1.8"
  required_providers {
    example = {
      source  = "acme/example"
      version = "1.2.3"
    }
  }
}
`,
	".terraform.lock.hcl": `provider "registry.opentofu.org/acme/example" {
  version     = "1.2.3"
  constraints = "1.2.3"
}
`,
	"variables.tf": `variable "machine" {
  type = object({
    name       = string
    namespace  = string
    uid        = string
    cluster_id = string
    labels     = map(string)
  })
  description = "What the Machine says of itself."
}

variable "provider_spec" {
  type = object({
    size              = string
    disks             = optional(list(object({ gib = number })), [])
    credentialsSecret = object({ name = string })
    userDataSecret    = optional(object({ name = string }))
  })
  description = "The fields of the providerSpec."
}

variable "user_data" {
  type        = string
  description = "What the instance runs at its first boot."
  sensitive   = true
}
`,
	"main.tf": `resource "example_instance" "this" {
  name = var.machine.name
  size = var.provider_spec.size
  tags = { uid = var.machine.uid }
}

resource "terraform_data" "note" {
  input = var.machine.uid
}
`,
	"outputs.tf": OutputBlocks(Outputs...),
	"lookup/import.tf": `import {
  to = example_instance.this
  id = "instances/${var.machine.name}"
}
`,
	"README.md":                 "# example\n",
	"examples/machineset.yaml":  "kind: MachineSet\n",
	"tests/module.tftest.hcl":   "run \"plans\" {}\n",
	"templates/user-data.tftpl": "hello\n",
}

func OutputBlocks(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		text.WriteString("output \"" + name + "\" {\n  description = \"One of the seven.\"\n  value       = \"\"\n}\n")
	}
	return text.String()
}

func FS(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

// Change edits a file: its name, the old text, the new text. With an empty old text, the new text replaces the file; if
// both are empty, it is removed.
type Change [3]string

// Edit applies changes to files and returns them. A missing old text fails the test.
func Edit(t *testing.T, files map[string]string, changes ...Change) map[string]string {
	t.Helper()
	for _, c := range changes {
		name, before, after := c[0], c[1], c[2]
		switch {
		case before == "" && after == "":
			delete(files, name)
		case before == "":
			files[name] = after
		case !strings.Contains(files[name], before):
			t.Fatalf("%s does not hold %q", name, before)
		default:
			files[name] = strings.Replace(files[name], before, after, 1)
		}
	}
	return files
}

func Changed(t *testing.T, changes ...Change) map[string]string {
	t.Helper()
	return Edit(t, Module(), changes...)
}

func ChangedStack(t *testing.T, changes ...Change) map[string]string {
	t.Helper()
	return Edit(t, Stack(), changes...)
}

// Load loads the module with changes, which must keep it valid.
func Load(t *testing.T, changes ...Change) *module.Module {
	t.Helper()
	return mustLoad(t, Changed(t, changes...))
}

// LoadStack loads the stack with changes, which must keep it valid.
func LoadStack(t *testing.T, changes ...Change) *module.Module {
	t.Helper()
	return mustLoad(t, ChangedStack(t, changes...))
}

func mustLoad(t *testing.T, files map[string]string) *module.Module {
	t.Helper()
	loaded, err := load.Module(FS(files))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// Placed returns changes that add a place, and a clouds.yaml in its credentials, to the module.
func Placed(place string) []Change {
	return []Change{
		{"module.yaml", "  capacity:\n", "  place:\n" + place + "  capacity:\n"},
		{"module.yaml", "      - key: token\n",
			"      - {key: clouds.yaml, file: CLOUDS_FILE, optional: true}\n" +
				"      - {key: \"{size}.id\", env: ID, optional: true}\n" +
				"      - {key: plain, env: PLAIN, optional: true, unless: clouds.yaml}\n      - key: token\n"},
		{"variables.tf", "    size              = string\n",
			"    size = string\n    cloud = optional(string, \"one\")\n    shared = optional(bool)\n" +
				"    port = optional(number)\n    apiToken = optional(string)\n" +
				"    nested = optional(object({ zone = optional(string) }))\n"},
	}
}
