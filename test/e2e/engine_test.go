//go:build e2e

package e2e_test

import (
	"os"
	"slices"

	. "github.com/onsi/ginkgo/v2"
)

// engineVariable names the environment variable with the engine that the story's Machines run on.
const engineVariable = "E2E_ENGINE"

// The engines, and the labels of what is tested with one of them alone.
const (
	onTerraform = "terraform"
	onPulumi    = "pulumi"
)

// stackKind is the kind of a providerSpec that names a stack.
const stackKind = "PulumiMachineProviderSpec"

// machinery is what Machines run on, as far as the story must know.
type machinery struct {
	name string
	// example is a MachineSet, kind the kind of its providerSpec.
	example, kind string
	// binary is the file of the CLI, work where its runs are in the manager's work folder.
	binary, work string
	// instance is how the engine calls the instance.
	instance string
	// plainUserData says that a run's folder has the user data in plain text while the run goes on.
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

// on is what the story's Machines run on, beside is the other.
var on, beside = chosen(os.Getenv(engineVariable))

// chosen returns the engine of that name, OpenTofu for none. A name that is wrong is found when the story begins.
func chosen(name string) (on, beside machinery) {
	if name == onPulumi {
		return machineries[1], machineries[0]
	}
	return machineries[0], machineries[1]
}

// engineKnown returns whether the environment names an engine that there is.
func engineKnown() bool {
	return slices.Contains([]string{"", onTerraform, onPulumi}, os.Getenv(engineVariable))
}

// only leaves out what is tested with the other engine alone.
func (m machinery) only(filter string) string {
	_, other := chosen(m.name)
	mine := "!" + other.name
	if filter == "" {
		return mine
	}
	return "(" + filter + ") && " + mine
}

// frame are the fields of a PulumiMachineProviderSpec that are the same for all stacks; a stack's own are under values.
var frame = []string{"apiVersion", "kind", "stack", "values", "credentialsSecret", "userDataSecret", "driftPolicy"}

// placed returns the object of a providerSpec that a field is in.
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

// patch is a change of a providerSpec's fields, as a merge patch of it.
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

// forTerraform and forPulumi mark what is tested with one engine alone.
var (
	forTerraform = Label(onTerraform)
	forPulumi    = Label(onPulumi)
)
