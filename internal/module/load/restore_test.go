package load_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// kept returns what is kept of a module: what a run sees, changed.
func kept(t *testing.T, changes ...moduletest.Change) map[string]string {
	t.Helper()
	files := moduletest.Changed(t, changes...)
	for name := range files {
		if !contract.InfluencesRun(name) {
			delete(files, name)
		}
	}
	return files
}

func TestRestoreReturnsWhatWasLoaded(t *testing.T) {
	loaded := moduletest.Load(t)
	restored, err := load.Restore(loaded.Files())
	if err != nil {
		t.Fatal(err)
	}
	if restored.Reference() != loaded.Reference() {
		t.Errorf("reference %s, want %s", restored.Reference(), loaded.Reference())
	}
	if diff := cmp.Diff(loaded.Spec(), restored.Spec()); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(loaded.Providers(), restored.Providers()); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	if restored.InstanceAddress() != loaded.InstanceAddress() || !restored.Absent("no such instance") || len(restored.LookupFiles()) != 1 {
		t.Error("instance, lookup or its words differ from what was loaded")
	}
	for _, name := range []string{module.VariableMachine, module.VariableProviderSpec, module.VariableUserData} {
		if !restored.Variable(name).Type.Equals(loaded.Variable(name).Type) {
			t.Errorf("variable %s is of type %s, want %s", name, restored.Variable(name).Type.GoString(), loaded.Variable(name).Type.GoString())
		}
	}
}

func TestRestoreDoesNotCheckTheContract(t *testing.T) {
	for name, changes := range map[string][]moduletest.Change{
		"a rule on resources":                {{"main.tf", "\n}", "\n  lifecycle {\n    prevent_destroy = true\n  }\n}"}},
		"a rule on outputs":                  {{"outputs.tf", "", moduletest.OutputBlocks("provider_id")}},
		"a rule on the lock file":            {{".terraform.lock.hcl", "1.2.3", "1.2"}},
		"a rule on lookup":                   {{"lookup/import.tf", "", "resource \"x_y\" \"z\" {}\n"}},
		"a field of module.yaml that is new": {{"module.yaml", "spec:\n", "spec:\n  later: true\n"}},
		"a catalogue, which no run sees":     {{"module.yaml", "    path: size\n", "    path: size\n    instanceTypesFile: capacity.yaml\n"}},
		"a rule on files":                    {{"override.tf", "", "locals {}\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := kept(t, changes...)
			if _, err := load.Module(moduletest.FS(files)); err == nil {
				t.Fatal("it breaks no rule; the case shows nothing")
			}
			restored, err := load.Restore(moduletest.FS(files))
			if err != nil {
				t.Fatal(err)
			}
			if restored.Name() != "example" || !restored.Serves("example.io/v1", "ExampleProviderSpec") {
				t.Errorf("restored %s, want example with its kind", restored.Name())
			}
		})
	}
}

// A module from before the rule on providers is destroyed by all of its HCL.
func TestRestoreLeavesProvidersWhole(t *testing.T) {
	const provider = "provider \"example\" {\n  region = data.example_region.this.id\n}\n"
	restored, err := load.Restore(moduletest.FS(kept(t, moduletest.Change{"providers.tf", "", provider})))
	if err != nil || len(restored.Bare().HCL) > 0 {
		t.Errorf("%v, and a destroy has\n%s", err, restored.Bare().HCL)
	}
}

func TestRestoreLeavesToTheEngineWhatOnlyItCanValidate(t *testing.T) {
	const validations = `  validation {
    condition     = timestamp() != var.provider_spec.size
    error_message = "Only the engine knows."
  }
  validation {
    condition     = var.provider_spec.size != ""
    error_message = "Name a size."
  }
  description = "The fields of the providerSpec."`
	restored, err := load.Restore(moduletest.FS(kept(t, moduletest.Change{"variables.tf", `  description = "The fields of the providerSpec."`, validations})))
	if err != nil {
		t.Fatal(err)
	}
	if got := restored.Variable(module.VariableProviderSpec).Validations; len(got) != 1 || got[0].Range.Filename != "variables.tf" {
		t.Errorf("%d validations, want the one that can be evaluated", len(got))
	}
}

func TestRestoreRefusesWhatCannotBeRun(t *testing.T) {
	for name, tc := range map[string]struct {
		change moduletest.Change
		want   string
	}{
		"no module.yaml":               {moduletest.Change{"module.yaml", "", ""}, "module.yaml"},
		"a type that cannot be read":   {moduletest.Change{"variables.tf", "size              = string", "size = strin"}, `variable "provider_spec"`},
		"a variable that is not there": {moduletest.Change{"variables.tf", `variable "user_data"`, `variable "other"`}, `variable "user_data"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load.Restore(moduletest.FS(kept(t, tc.change)))
			var broken *contract.Error
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), tc.want+" cannot be read by this version") {
				t.Errorf("error %v, want it to name %s", err, tc.want)
			}
		})
	}
}

func TestRestoreDetectsAChangeByTheDigest(t *testing.T) {
	loaded := moduletest.Load(t)
	restored, err := load.Restore(moduletest.FS(kept(t, moduletest.Change{"templates/user-data.tftpl", "hello", "hullo"})))
	if err != nil || restored.Digest() == loaded.Digest() {
		t.Errorf("digest %s, %v; want another than that of what was loaded", restored.Digest(), err)
	}
}
