//go:build e2e

package e2e_test

import (
	"os"
	"slices"

	. "github.com/onsi/ginkgo/v2"
)

// engineVariable is the environment variable with the engine of the story's Machines.
const engineVariable = "E2E_ENGINE"

// The engines, and the labels of specs for one of them.
const (
	onTerraform = "terraform"
	onPulumi    = "pulumi"
)

// stackKind is the providerSpec kind of stacks.
const stackKind = "PulumiMachineProviderSpec"

// machinery is what the story must know about an engine.
type machinery struct {
	name string
	// example is a MachineSet, kind its providerSpec's.
	example, kind string
	// binary is the CLI's file, work the folder of its runs in the manager's work folder.
	binary, work string
	// instance is the engine's address of the instance.
	instance string
	// plainUserData means that a run's folder contains the user data in plain text during the run.
	plainUserData bool
}

var machineries = []machinery{
	{
		name: onTerraform, example: "modules/kubemark/examples/machineset.yaml", kind: "KubemarkMachineProviderConfig",
		binary: "tofu", work: "runs", instance: "kubectl_manifest.this", plainUserData: true,
	},
	{
		name: onPulumi, example: "stacks/kubemark/examples/machineset.yaml", kind: stackKind,
		binary: "pulumi", work: "pulumi/runs", instance: "kubectl:index/manifest:Manifest.this",
	},
}

// on is the story's engine, beside the other one.
var on, beside = chosen(os.Getenv(engineVariable))

// chosen returns the engine with a name, by default OpenTofu. BeforeSuite reports an invalid name.
func chosen(name string) (on, beside machinery) {
	if name == onPulumi {
		return machineries[1], machineries[0]
	}
	return machineries[0], machineries[1]
}

// engineKnown reports whether the environment names a valid engine.
func engineKnown() bool {
	return slices.Contains([]string{"", onTerraform, onPulumi}, os.Getenv(engineVariable))
}

// only skips specs for the other engine.
func (m machinery) only(filter string) string {
	_, other := chosen(m.name)
	mine := "!" + other.name
	if filter == "" {
		return mine
	}
	return "(" + filter + ") && " + mine
}

// frame are the fields of a PulumiMachineProviderSpec that all stacks share; a stack's own are under values.
var frame = []string{"apiVersion", "kind", "stack", "values", "credentialsSecret", "userDataSecret", "driftPolicy"}

// placed returns the object in a providerSpec that contains a field.
func placed(spec map[string]any, field string) map[string]any {
	if spec["kind"] != stackKind || slices.Contains(frame, field) {
		return spec
	}
	values, ok := spec["values"].(map[string]any)
	if !ok {
		values = map[string]any{}
		spec["values"] = values
	}
	return values
}

// patch returns a merge patch of a providerSpec's fields.
func (m machinery) patch(fields map[string]any) map[string]any {
	patch := map[string]any{}
	for name, value := range fields {
		if m.kind == stackKind && !slices.Contains(frame, name) {
			values, _ := patch["values"].(map[string]any)
			if values == nil {
				values = map[string]any{}
				patch["values"] = values
			}
			values[name] = value
			continue
		}
		patch[name] = value
	}
	return patch
}

// forTerraform and forPulumi label specs for one engine.
var (
	forTerraform = Label(onTerraform)
	forPulumi    = Label(onPulumi)
)
