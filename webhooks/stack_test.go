package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
)

// bothRules are those of a module and a stack of one name.
func bothRules(t testing.TB) rules {
	t.Helper()
	hcl, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	programs, err := load.Modules(stacks.FS)
	if err != nil {
		t.Fatal(err)
	}
	var loaded []*module.Module
	for _, one := range append(hcl, programs...) {
		if one.Name() == "kubemark" {
			loaded = append(loaded, one)
		}
	}
	catalog, err := module.NewCatalog(loaded...)
	if err != nil {
		t.Fatal(err)
	}
	return newRules(Options{Catalog: catalog})
}

// ofStack returns a providerSpec of the kind for any stack with the fields after those that it has
// in common.
func ofStack(fields string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(`{"apiVersion":"machine-iac.io/v1alpha1","kind":"PulumiMachineProviderSpec"` + fields + `}`)}
}

func TestMachineOfTheKindForAnyStack(t *testing.T) {
	const kubemark = `,"stack":"kubemark","credentialsSecret":{"name":"c"}`
	tests := map[string]struct {
		machine      *machinev1beta1.Machine
		wantErrs     []string
		wantWarnings []string
	}{
		"all is well": {machine: machineWith(withValue(ofStack(kubemark + `,"values":{"cpu":8,"zone":"a"},"driftPolicy":"Repair"`)))},
		"its values are held to the stack's rules": {
			machine: machineWith(withValue(ofStack(kubemark + `,"values":{"cpu":8,"pods":0}`))),
			wantErrs: []string{
				`providerSpec.values.pods: Invalid value: 0: the stack "kubemark" does not allow 0; pods is a whole number and at least 1: ` +
					`write it as pods: 110.`,
			},
		},
		"a stack that is not loaded": {
			machine: machineWith(withValue(ofStack(`,"stack":"aws"`))),
			wantErrs: []string{`providerSpec.stack: Unsupported value: "aws": no stack is called "aws"; known are kubemark; ` +
				`name one that is loaded`},
		},
		"a module in place of a stack": {
			machine: machineWith(withValue(ofStack(`,"module":"kubemark"`))),
			wantErrs: []string{`providerSpec.stack: Required value: the name of a stack is required, but it is missing; ` +
				`name a stack that is loaded`},
		},
		"no credentials": {
			machine: machineWith(withValue(ofStack(`,"stack":"kubemark"`))),
			wantErrs: []string{`providerSpec.credentialsSecret.name: Required value: the name of a Secret is required, but it is missing; ` +
				`name a Secret in the Machine's namespace`},
		},
		"fields without effect warn": {
			machine: machineWith(withValue(ofStack(kubemark+`,"cpu":8,"values":{"Zone":"a"}`)), drifting("Ignore")),
			wantWarnings: []string{
				`providerSpec.value: Unsupported value: "cpu": Unknown field (cpu) will be ignored; write it below values`,
				`metadata.annotations["machine-iac.io/drift-policy"]: it has no effect beside a PulumiMachineProviderSpec; set driftPolicy in the providerSpec`,
				`providerSpec.value: Unsupported value: "values.Zone": Unknown field (values.Zone) will be ignored; write it as zone`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := bothRules(t).newMachine(tc.machine)
			if diff := cmp.Diff(tc.wantErrs, texts(got.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachineSetOfTheKindForAnyStack(t *testing.T) {
	set := setWith(withTemplate(ofStack(`,"stack":"kubemark","credentialsSecret":{"name":"c"},"values":{"zone":"a/b"}`)))
	got := bothRules(t).newMachineSet(set)
	wantErrs := []string{`providerSpec.values.zone: Invalid value: "a/b": the stack "kubemark" does not allow "a/b"; ` +
		`region and zone become values of labels: write at most 63 letters, digits, '-', '_' and '.', for example zone: zone-a.`}
	if diff := cmp.Diff(wantErrs, texts(got.errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestSecretsOfAStackAreLookedForWhereTheyAreNamed(t *testing.T) {
	validator := &machineValidator{rules: bothRules(t), secrets: secretChecks{reader: &reader{exist: map[types.NamespacedName]bool{}}}}
	got, err := validator.ValidateCreate(t.Context(), machineWith(withValue(ofStack(`,"stack":"kubemark","credentialsSecret":{"name":"c"}`))))
	want := []string{`providerSpec.credentialsSecret: Invalid value: "c": not found. Expected CredentialsSecret to exist`}
	if diff := cmp.Diff(want, []string(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAMachineThatComesToNameAStackIsHeldToItsRules(t *testing.T) {
	before := machineWith(withValue(generic(`,"module":"kubemark","credentialsSecret":{"name":"c"}`)))
	after := machineWith(withValue(ofStack(`,"stack":"kubemark","credentialsSecret":{"name":"c"},"values":{"pods":0}`)))
	if got := bothRules(t).changedMachine(before, after); len(got.errs) != 1 {
		t.Errorf("errors %v; want the stack's rules to hold for what names it", texts(got.errs))
	}
}
