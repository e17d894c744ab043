package preview

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/diff"
	"github.com/machine-iac/machine-iac-operator/internal/plan/manifest"
	"github.com/machine-iac/machine-iac-operator/internal/plan/program"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

func realPulumi(t testing.TB) pulumi.Binary {
	t.Helper()
	binary, err := pulumi.Find(t.Context(), filepath.Join("..", "..", "..", "bin", "pulumi"))
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	return binary
}

// realStackPlanner returns a planner with the engine and the providers that `make tools` built.
func realStackPlanner(t testing.TB) *program.Planner {
	t.Helper()
	planner, err := program.New(t.Context(), program.Options{
		Binary: realPulumi(t), Plugins: "../../../bin/pulumi-plugins", ProviderMirror: "../../../bin/mirror", Parallel: 2,
	})
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	t.Cleanup(func() {
		if err := planner.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return planner
}

// TestAPreviewOfAStackAgreesWithTheUpdate makes a Machine after a preview of its MachineSet, and one of the Machine itself: every value
// in them is the one that Pulumi then has in its checkpoint.
func TestAPreviewOfAStackAgreesWithTheUpdate(t *testing.T) {
	loaded, err := load.Folders("../../../stacks/kubemark")
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := module.NewCatalog(loaded...)
	if err != nil {
		t.Fatal(err)
	}
	providerSpec := map[string]any{
		"apiVersion": "machine-iac.io/v1alpha1", "kind": "PulumiMachineProviderSpec", "stack": "kubemark",
		"credentialsSecret": map[string]any{"name": "c"},
		"values":            map[string]any{"instanceType": "huge", "zone": "zone-a", "cpu": 8},
	}
	machine := machineFor(t, providerSpec)
	environment, credentials := apiServer(t)
	applied := updated(t, render.Input{Machine: machine, ClusterID: "demo", Module: loaded[0], Credentials: credentials}, environment)
	machine.Kind, machine.APIVersion = manifest.KindMachine, machinev1beta1.GroupVersion.String()
	raw, err := json.Marshal(machine)
	if err != nil {
		t.Fatal(err)
	}
	planner := realStackPlanner(t)
	wantKnown := []string{
		"kubectl:index/manifest:Manifest.this validateSchema", "kubectl:index/manifest:Manifest.this ignoreFields[0]",
		"outputs addresses[0].type", "outputs instance_type", "outputs zone",
	}
	wantKnownOfMachine := []string{"outputs addresses[0].address", "outputs addresses[1].address", "outputs provider_id"}
	known := previewed(t, planner, catalog, setFor(t, providerSpec))
	compare(t, known, applied, wantKnown)
	compare(t, previewed(t, planner, catalog, string(raw)), applied, append(wantKnown, wantKnownOfMachine...))
	for _, path := range wantKnownOfMachine {
		if value, found := known[path]; found {
			t.Errorf("the preview of the MachineSet has %s = %s, which is not known yet", path, value)
		}
	}
}

// updated creates a Machine with Pulumi, and returns each value of its checkpoint.
func updated(t *testing.T, input render.Input, environment map[string]string) map[string]string {
	t.Helper()
	inputs, err := render.Render(input)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pu") // short: plugins put sockets into it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	engine, err := pulumi.New(pulumi.Options{
		Binary: realPulumi(t), WorkDir: dir, Plugins: "../../../bin/pulumi-plugins", ProviderMirror: "../../../bin/mirror",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	key, err := pulumi.NewKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(environment)
	maps.Copy(all, inputs.Environment)
	folder, err := engine.Open(t.Context(), pulumi.RunSpec{
		ID: "update", Project: input.Module.Name(), Program: input.Module.Files(), Variables: withLocals(t, input.Module, inputs.Variables),
		Secret: []string{module.VariableUserData}, Environment: all, Key: key, Save: func(context.Context, []byte) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if report, err := folder.Apply(t.Context()); err != nil {
		t.Fatalf("%v: %+v", err, report.Diagnostics)
	}
	raw, err := folder.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	return checkpointed(t, raw)
}

// withLocals returns variables with the values of the stack's locals, as a run has them.
func withLocals(t *testing.T, stack *module.Module, variables []byte) []byte {
	t.Helper()
	locals, err := stack.Locals(variables)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(variables, &all); err != nil {
		t.Fatal(err)
	}
	all[module.ConfigLocals] = locals
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// checkpointed returns each value of a checkpoint, by the address and the path.
func checkpointed(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	var checkpoint struct {
		Checkpoint struct {
			Latest struct {
				Resources []struct {
					URN     string         `json:"urn"`
					Type    string         `json:"type"`
					Outputs map[string]any `json:"outputs"`
				} `json:"resources"`
			} `json:"latest"`
		} `json:"checkpoint"`
	}
	if err := json.Unmarshal(raw, &checkpoint); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, one := range checkpoint.Checkpoint.Latest.Resources {
		address := one.Type + one.URN[strings.LastIndex(one.URN, "::"):]
		address = strings.Replace(address, "::", ".", 1)
		if one.Type == "pulumi:pulumi:Stack" {
			address = "outputs"
		}
		for _, attribute := range diff.Compare(nil, one.Outputs) {
			found[address+" "+attribute.Path] = attribute.Text()
		}
	}
	return found
}
