package modules_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// counterparts are the stacks that take the providerSpec of a module of the same name, so far as a program can carry it out, with values of
// fields, beside those of the module's own tests, that only the stack refuses: each by one validation.
var counterparts = map[string]map[string]string{
	"aws": {
		"affinity to a host":              `{ placement = { region = "r", tenancy = "host", host = { affinity = "DedicatedHost" } } }`,
		"a host that is to be made":       `{ placement = { region = "r", tenancy = "host", host = { affinity = "AnyAvailable", dedicatedHost = { allocationStrategy = "Dynamic" } } } }`,
		"a host without an id":            `{ placement = { region = "r", tenancy = "host", host = { affinity = "AnyAvailable", dedicatedHost = { id = "x" } } } }`,
		"tags of a host that is not made": `{ placement = { region = "r", tenancy = "host", host = { affinity = "AnyAvailable", dedicatedHost = { id = "h-01234567", dynamicHostAllocation = { tags = [{ name = "a" }] } } } } }`,
		"a load balancer without a name":  `{ loadBalancers = [{ name = "", type = "classic" }] }`,
		"a load balancer":                 `{ loadBalancers = [{ name = "a", type = "network" }] }`,
	},
	"openstack": {
		"more addresses than are reported": `{ networks = [for i in range(17) : { uuid = "n${i}" }] }`,
		"a port of no network":             `{ networks = [], ports = [{ nameSuffix = "a" }] }`,
		"a port called by a number":        `{ networks = [], ports = [{ networkID = "n", nameSuffix = "1" }] }`,
		"a port with a long description":   `{ networks = [], ports = [{ networkID = "n", description = join("", [for i in range(201) : "x"]) }] }`,
		"a pair without an address":        `{ networks = [], ports = [{ networkID = "n", allowedAddressPairs = [{ macAddress = "fa:16:3e:00:00:01" }] }] }`,
	},
}

// eachCounterpart runs a test for each of them.
func eachCounterpart(t *testing.T, test func(t *testing.T, stack kept)) {
	t.Helper()
	for name := range counterparts {
		t.Run(name, func(t *testing.T) {
			test(t, keptIn(t, filepath.Join("..", "stacks", name)))
		})
	}
}

// A stack's README links to its module's for the fields, so the module's table must fit the stack.
func TestTheREADMEOfTheModuleHasEveryFieldOfTheStack(t *testing.T) {
	eachCounterpart(t, func(t *testing.T, stack kept) {
		hasEveryField(t, kept{Module: stack.Module, files: os.DirFS(stack.Name())})
	})
}

func TestAStackKnowsEveryFieldOfTheMachineAPI(t *testing.T) {
	eachCounterpart(t, func(t *testing.T, stack kept) {
		knowsTheMachineAPI(t, kept{Module: stack.Module, files: os.DirFS(stack.Name())})
	})
}

// TestTheExampleOfAStackIsTakenAsItIs wants nothing refused and nothing without effect, and to know what its Machines offer.
func TestTheExampleOfAStackIsTakenAsItIs(t *testing.T) {
	eachCounterpart(t, func(t *testing.T, stack kept) {
		set := machineSet(t, stack.files, "examples/machineset.yaml")
		machine := &machinev1beta1.Machine{
			ObjectMeta: metav1.ObjectMeta{GenerateName: set.Name + "-", Namespace: set.Namespace, Labels: set.Spec.Template.Labels}, Spec: set.Spec.Template.Spec,
		}
		warnings, err := render.Check(render.Input{Machine: machine, Module: stack.Module})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%v, warnings %v; want none", err, warnings)
		}
		providerSpec, err := render.ProviderSpec(machine, stack.Module)
		if err != nil {
			t.Fatal(err)
		}
		if size, err := module.SizeOf(stack.Module, providerSpec); err != nil || size == nil || size.CPU < 1 || size.MemoryMiB < 1 {
			t.Errorf("the size is %+v, %v; want processors and memory", size, err)
		}
	})
}

// TestEveryValidationOfAStackIsSeenToFail checks a stack's validations with the runs of the module's tests, and with what only the stack refuses.
func TestEveryValidationOfAStackIsSeenToFail(t *testing.T) {
	eachCounterpart(t, func(t *testing.T, stack kept) {
		seen := map[string]bool{}
		for _, r := range runs(t, os.DirFS(stack.Name())) {
			if broken := refusals(t, stack, r); len(r.fails) == 1 && len(broken) == 1 && broken[0].Variable == r.fails[0] {
				seen[broken[0].Range.String()] = true
			}
		}
		for name, fields := range counterparts[stack.Name()] {
			broken := refusals(t, stack, run{name: name, values: changed(t, stack.Name(), fields)})
			if len(broken) != 1 {
				t.Errorf("%s is refused by the validations at %v, want one", name, places(broken))
				continue
			}
			seen[broken[0].Range.String()] = true
		}
		for _, variable := range []string{module.VariableMachine, module.VariableProviderSpec, module.VariableUserData} {
			for _, validation := range stack.Variable(variable).Validations {
				if !seen[validation.Range.String()] {
					t.Errorf("%s: nothing is seen to be refused by this validation of var.%s, and by no other", validation.Range, variable)
				}
			}
		}
	})
}

// changed returns the variables that the tests of a module's validations begin with, with fields in the place of some of its providerSpec.
func changed(t *testing.T, name, fields string) map[string]cty.Value {
	t.Helper()
	expression, diags := hclsyntax.ParseExpression([]byte(fields), "fields", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	given, diags := expression.Value(&hcl.EvalContext{Functions: hclfuncs.Functions()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	parsed, diags := hclparse.NewParser().ParseHCLFile(filepath.Join(name, "tests", "validation.tftest.hcl"))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	values := variablesOf(t, parsed.Body.(*hclsyntax.Body))
	spec := values[module.VariableProviderSpec].AsValueMap()
	maps.Copy(spec, given.AsValueMap())
	values[module.VariableProviderSpec] = cty.ObjectVal(spec)
	return values
}
