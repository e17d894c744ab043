package preview_test

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

func realPulumi(t testing.TB) pulumi.Binary {
	t.Helper()
	binary, err := pulumi.Find(t.Context(), filepath.Join("..", "..", "..", "bin", "pulumi"))
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	return binary
}

// realStackPlanner returns a planner with the engine and providers that `make tools` built.
func realStackPlanner(t testing.TB) *offline.StackPlanner {
	t.Helper()
	planner, err := offline.NewStackPlanner(t.Context(), offline.StackOptions{
		Binary: realPulumi(t), Plugins: "../../../bin/pulumi-plugins", ProviderMirror: "../../../bin/mirror",
		Parallel: 2,
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

// TestAPreviewOfAStackAgreesWithTheUpdate compares previews of a MachineSet and of a Machine with the checkpoint that
// Pulumi then writes.
func TestAPreviewOfAStackAgreesWithTheUpdate(t *testing.T) {
	long.Test(t)
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
	applied := updated(t, render.Input{Machine: machine, ClusterID: "demo", Module: loaded[0],
		Credentials: credentials}, environment)
	machine.Kind, machine.APIVersion = preview.KindMachine, machinev1beta1.GroupVersion.String()
	raw, err := json.Marshal(machine)
	if err != nil {
		t.Fatal(err)
	}
	planner := realStackPlanner(t)
	wantKnown := []string{
		"kubectl:index/manifest:Manifest.this validateSchema", "kubectl:index/manifest:Manifest.this ignoreFields[0]",
		"outputs addresses[0].type", "outputs instance_type", "outputs zone",
	}
	wantKnownOfMachine := []string{"outputs addresses[0].address", "outputs addresses[1].address",
		"outputs provider_id"}
	known := previewed(t, planner, catalog, setFor(t, providerSpec))
	compare(t, known, applied, wantKnown)
	compare(t, previewed(t, planner, catalog, string(raw)), applied, append(wantKnown, wantKnownOfMachine...))
	for _, path := range wantKnownOfMachine {
		if value, found := known[path]; found {
			t.Errorf("the preview of the MachineSet has %s = %s, which is not known yet", path, value)
		}
	}
}

// updated creates a Machine with Pulumi, and returns the values in its checkpoint.
func updated(t *testing.T, input render.Input, environment map[string]string) map[string]string {
	t.Helper()
	inputs, err := render.Render(input)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := pulumi.New(pulumi.Options{
		Binary: realPulumi(t), WorkDir: shortdir.New(t), Plugins: "../../../bin/pulumi-plugins",
		ProviderMirror: "../../../bin/mirror",
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
		ID: "update", Project: input.Module.Name(), Program: input.Module.Files(),
		Variables: withLocals(t, input.Module, inputs.Variables),
		Secret:    []string{module.VariableUserData}, Environment: all, Key: key,
		Save: func(context.Context, []byte) error { return nil },
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

// withLocals adds the stack's locals to variables, as a run does.
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

// checkpointed returns the values in a checkpoint by address and path.
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
		for _, attribute := range preview.Compare(nil, one.Outputs) {
			found[address+" "+attribute.Path] = attribute.Text()
		}
	}
	return found
}
