package module

import (
	"strings"
	"testing"
	"testing/fstest"
)

// validFiles is a module that keeps the contract, with a lookup, a second kind version and every optional part.
func validFiles() map[string]string {
	return map[string]string{
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
}

resource "terraform_data" "note" {
  input = var.machine.uid
}
`,
		"outputs.tf": outputsText(requiredOutputs...),
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
}

func outputsText(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		text.WriteString("output \"" + name + "\" {\n  description = \"One of the seven.\"\n  value       = \"\"\n}\n")
	}
	return text.String()
}

func asFS(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

// change is an edit of the valid module: old replaced by new in a file. With old empty the file becomes new; with both empty
// it goes.
type change struct {
	file, old, new string
}

func changed(t *testing.T, changes ...change) map[string]string {
	t.Helper()
	return edited(t, validFiles(), changes...)
}

func edited(t *testing.T, files map[string]string, changes ...change) map[string]string {
	t.Helper()
	for _, c := range changes {
		switch {
		case c.old == "" && c.new == "":
			delete(files, c.file)
		case c.old == "":
			files[c.file] = c.new
		case !strings.Contains(files[c.file], c.old):
			t.Fatalf("%s does not hold %q", c.file, c.old)
		default:
			files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
		}
	}
	return files
}

func mustLoad(t *testing.T, changes ...change) *Module {
	t.Helper()
	loaded, err := Load(asFS(changed(t, changes...)))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
