package canary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	echoModule = "echo"
	echoStack  = "echo-stack"
)

// change replaces a text in a file of a module.
type change struct{ file, text, with string }

// writeModules writes a module and a stack that create Nodes with the user data in an annotation. With echo in the
// providerSpec, the user data also becomes a label, whole or in pieces: the API server rejects and repeats it.
func writeModules(t *testing.T, folder string) {
	t.Helper()
	const adopted = `  adopt:
    byName: true
    absent:
      - 'There is no Node \S+ to adopt'
  inventory: {}
`
	const echo = "    cpu          = optional(number, 4)\n"
	copied(t, repository(t, "modules", "kubemark"), filepath.Join(folder, echoModule), []change{
		{"module.yaml", "name: kubemark", "name: " + echoModule},
		{"module.yaml", "kubemarkproviderconfig.openshift.io/v1alpha1", "echo.example.com/v1"},
		{"examples/machineset.yaml", "kubemarkproviderconfig.openshift.io/v1alpha1", "echo.example.com/v1"},
		{"module.yaml", adopted, ""},
		{"variables.tf", echo, echo + "    echo = optional(number, 0)\n"},
		{"main.tf", `{ "kwok.x-k8s.io/node" = "fake" }`, `{ "user-data" = var.user_data }`},
		{"main.tf", "labels      = local.labels",
			`labels      = merge(local.labels, var.provider_spec.echo == 0 ? {} : {
    echo = var.provider_spec.echo == 1 ? var.user_data : join(" and ", split("\"", var.user_data))
  })`},
	})
	copied(t, repository(t, "stacks", "kubemark"), filepath.Join(folder, echoStack), []change{
		{"module.yaml", "name: kubemark", "name: " + echoStack},
		{"Pulumi.yaml", "name: kubemark", "name: " + echoStack},
		{"examples/machineset.yaml", "stack: kubemark", "stack: " + echoStack},
		{"lookup/Pulumi.yaml", "name: kubemark", "name: " + echoStack},
		{"variables.tf", echo, echo + "    echo = optional(number, 0)\n"},
		{"Pulumi.yaml", "      yamlBody: ${locals.node}\n", `      yamlBody:
        fn::toJSON:
          apiVersion: v1
          kind: Node
          metadata:
            name: ${machine.name}
            annotations: {user-data: "${user_data}"}
            labels:
              zone: ${provider_spec.zone}
              echo:
                fn::select:
                  - ${provider_spec.echo}
                  - [none, "${user_data}", {"fn::join": [" and ", {"fn::split": ['"', "${user_data}"]}]}]
          spec: {providerID: "${locals.provider_id}"}
`},
		{"Pulumi.yaml", "    options:\n", "    options:\n      additionalSecretOutputs: [yamlBodyParsed]\n"},
	})
}

// copied copies a module without adopt/, and changes it.
func copied(t *testing.T, from, to string, changes []change) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for _, unused := range []string{"adopt", "inventory", "tests/adopt", "tests/inventory"} {
		if err := os.RemoveAll(filepath.Join(to, unused)); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range changes {
		file := filepath.Join(to, one.file)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), one.text) {
			t.Fatalf("%s has no %q any more", file, one.text)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(content), one.text, one.with, 1)), 0o600); err !=
			nil {
			t.Fatal(err)
		}
	}
}
