package stacks_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/stacks"
)

// examples is where the stacks are that are not built in.
const examples = "../examples/stacks"

// each runs a test for each stack of this repository, by the name of its folder.
func each(t *testing.T, test func(t *testing.T, stack *module.Module, folder string)) {
	t.Helper()
	for _, parent := range []string{".", examples} {
		for _, name := range folders(t, parent) {
			t.Run(name, func(t *testing.T) {
				folder := filepath.Join(parent, name)
				test(t, mustLoad(t, folder), folder)
			})
		}
	}
}

// folders returns the names of the stacks in a folder.
func folders(t *testing.T, parent string) []string {
	t.Helper()
	descriptions, err := filepath.Glob(filepath.Join(parent, "*", "module.yaml"))
	if err != nil || len(descriptions) == 0 {
		t.Fatalf("looking for stacks in %s: found %d, %v", parent, len(descriptions), err)
	}
	names := make([]string, 0, len(descriptions))
	for _, description := range descriptions {
		names = append(names, filepath.Base(filepath.Dir(description)))
	}
	return names
}

// mustLoad returns the stack or module in a folder, which keeps its contract.
func mustLoad(t *testing.T, folder string) *module.Module {
	t.Helper()
	loaded, err := load.Module(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestEveryStackIsOne(t *testing.T) {
	each(t, func(t *testing.T, stack *module.Module, folder string) {
		if stack.Engine() != v1alpha1.EnginePulumi || stack.Name() != filepath.Base(folder) {
			t.Errorf("it is %s of the engine %s, want a stack of the folder's name", stack.Name(), stack.Engine())
		}
		if len(stack.LookupFiles()) == 0 {
			t.Error("it has no lookup, so a create that is lost stays lost")
		}
	})
}

func TestAStackTellsTheLabelsOfTheModule(t *testing.T) {
	for _, name := range folders(t, ".") {
		stack, twin := mustLoad(t, name).Spec().Capacity.Labels, mustLoad(t, "../modules/"+name).Spec().Capacity.Labels
		if diff := cmp.Diff(twin, stack); diff != "" || len(stack) == 0 {
			t.Errorf("%s (-module +stack):\n%s", name, diff)
		}
	}
}

// TestUserDataIsComparedWithNoInstance reads the programs: what is made of user data, an instance keeps as it was made.
func TestUserDataIsComparedWithNoInstance(t *testing.T) {
	each(t, func(t *testing.T, stack *module.Module, _ string) {
		var program struct {
			Resources map[string]struct {
				Properties map[string]any `json:"properties"`
				Options    struct {
					IgnoreChanges []string `json:"ignoreChanges"`
				} `json:"options"`
			} `json:"resources"`
		}
		text, err := fs.ReadFile(stack.Files(), "Pulumi.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &program); err != nil {
			t.Fatal(err)
		}
		for name, resource := range program.Resources {
			for property, value := range resource.Properties {
				made, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				keeps := slices.Contains(resource.Options.IgnoreChanges, property) || stack.Name() == "openstack" // whose provider does
				if bytes.Contains(made, []byte("${user_data}")) && !keeps {
					t.Errorf("%s of the resource %s changes with the user data", property, name)
				}
			}
		}
	})
}

// TestExamplesAreTakenAsTheyAre applies the examples in mind: nothing of them is refused, and nothing has no effect.
func TestExamplesAreTakenAsTheyAre(t *testing.T) {
	each(t, func(t *testing.T, stack *module.Module, folder string) {
		catalog, err := module.NewCatalog(stack)
		if err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(folder, "examples", "machineset*.yaml"))
		if err != nil || len(names) == 0 {
			t.Fatalf("examples %v, %v", names, err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			set := &machinev1beta1.MachineSet{}
			if err := yaml.UnmarshalStrict(content, set); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if faults := render.CheckSet(&set.Spec); len(faults) > 0 {
				t.Errorf("%s: %v", name, faults.ToAggregate())
			}
			machine := render.MachineOf(set)
			if found, err := render.ModuleFor(catalog, machine, ""); err != nil || found != stack {
				t.Errorf("%s: it names another stack: %v", name, err)
			}
			warnings, err := render.Check(render.Input{Machine: machine, Module: stack})
			if err != nil || len(warnings) > 0 {
				t.Errorf("%s: %v, warnings %v; want none", name, err, warnings)
			}
			providerSpec, err := render.ProviderSpec(machine, stack)
			if err != nil {
				t.Fatal(err)
			}
			if size, err := module.SizeOf(stack, providerSpec); err != nil || size == nil || size.CPU < 1 || size.MemoryMiB < 1 {
				t.Errorf("%s: the size is %+v, %v; want what an autoscaler has to know while there is no Machine", name, size, err)
			}
		}
	})
}

func TestEveryStackIsBuiltIn(t *testing.T) {
	entries, err := fs.ReadDir(stacks.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	embedded := make([]string, 0, len(entries))
	for _, entry := range entries {
		embedded = append(embedded, entry.Name())
	}
	for _, name := range folders(t, ".") {
		if !slices.Contains(embedded, name) {
			t.Errorf("the folder %s is a stack, but embed.go does not have it: add all:%[1]s", name)
		}
	}
}

// The variables of the stack are generated from the module, and hack/stackvariables/kubemark.hcl changes no validation.
func TestSimulatedNodesTakeTheSameValuesOfBothEngines(t *testing.T) {
	stack, of := mustLoad(t, "kubemark"), mustLoad(t, "../modules/kubemark")
	for _, name := range []string{module.VariableMachine, module.VariableProviderSpec, module.VariableUserData} {
		want, got := of.Variable(name), stack.Variable(name)
		if !got.Type.Equals(want.Type) {
			t.Errorf("var.%s is a %#v, want the module's %#v", name, got.Type, want.Type)
		}
		wanted, validations := sources(t, "../modules/kubemark", want.Validations), sources(t, "kubemark", got.Validations)
		if diff := cmp.Diff(wanted, validations); diff != "" {
			t.Errorf("validations of var.%s differ (-module +stack):\n%s", name, diff)
		}
	}
}

// sources returns what validations say.
func sources(t *testing.T, folder string, validations []module.Validation) []string {
	t.Helper()
	var found []string
	for _, one := range validations {
		content, err := os.ReadFile(filepath.Join(folder, one.Range.Filename))
		if err != nil {
			t.Fatal(err)
		}
		for _, expression := range []hclsyntax.Expression{one.Condition, one.ErrorMessage} {
			found = append(found, string(expression.Range().SliceBytes(content)))
		}
	}
	return found
}
