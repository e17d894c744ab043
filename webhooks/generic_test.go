package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// generic returns a providerSpec of the kind for any module with the fields after those that it has
// in common.
func generic(fields string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(`{"apiVersion":"machine-iac.io/v1alpha1","kind":"TerraformMachineProviderSpec"` + fields + `}`)}
}

// drifting returns a modifier that annotates a Machine with a drift policy.
func drifting(policy string) func(*machinev1beta1.Machine) {
	return builder.WithAnnotations(map[string]string{"machine-iac.io/drift-policy": policy})
}

func TestMachineOfTheKindForAnyModule(t *testing.T) {
	const kubemark = `,"module":"kubemark","credentialsSecret":{"name":"c"}`
	tests := map[string]struct {
		machine      *machinev1beta1.Machine
		wantErrs     []string
		wantWarnings []string
	}{
		"all is well": {machine: machineWith(withValue(generic(kubemark + `,"values":{"cpu":8,"zone":"a"},"driftPolicy":"Repair"`)))},
		"its values are held to the module's rules": {
			machine: machineWith(withValue(generic(kubemark + `,"values":{"cpu":"many","pods":0,"architecture":"vax","taints":[{"key":"a"}]}`))),
			wantErrs: []string{
				`providerSpec.values.cpu: Invalid value: "many": a number is required, but "many" is a string; write it as cpu: 4`,
				`providerSpec.values.taints[0].effect: Required value: a string is required, but it is missing; add effect: "text"`,
				`providerSpec.values.pods: Invalid value: 0: the module "kubemark" does not allow 0; pods is a whole number and at least 1: ` +
					`write it as pods: 110.`,
				`providerSpec.values.architecture: Unsupported value: "vax": the module "kubemark" does not allow "vax"; ` +
					`architecture is one of amd64, arm64, ppc64le and s390x: write it as architecture: amd64.`,
			},
		},
		"a module that is not loaded": {
			machine: machineWith(withValue(generic(`,"module":"aws"`))),
			wantErrs: []string{`providerSpec.module: Unsupported value: "aws": no provider module is called "aws"; known are kubemark; ` +
				`name one that is loaded`},
		},
		"no module": {
			machine: machineWith(withValue(generic(``))),
			wantErrs: []string{`providerSpec.module: Required value: the name of a provider module is required, but it is missing; ` +
				`name a provider module that is loaded`},
		},
		"no credentials": {
			machine: machineWith(withValue(generic(`,"module":"kubemark"`))),
			wantErrs: []string{`providerSpec.credentialsSecret.name: Required value: the name of a Secret is required, but it is missing; ` +
				`name a Secret in the Machine's namespace`},
		},
		"fields of the module beside the values warn": {
			machine: machineWith(withValue(generic(kubemark + `,"cpu":8,"values":{"Zone":"a"}`))),
			wantWarnings: []string{
				`providerSpec.value: Unsupported value: "cpu": Unknown field (cpu) will be ignored; write it below values`,
				`providerSpec.value: Unsupported value: "values.Zone": Unknown field (values.Zone) will be ignored; write it as zone`,
			},
		},
		"a drift policy that is none": {
			machine: machineWith(withValue(generic(kubemark + `,"driftPolicy":"Replace"`))),
			wantErrs: []string{`providerSpec.driftPolicy: Unsupported value: "Replace": "Replace" is no drift policy; ` +
				`write Report, Repair or Ignore`},
		},
		"a module's own kind says its drift policy in an annotation": {machine: machineWith(drifting("Ignore"))},
		"which is held to the same choice": {
			machine: machineWith(drifting("Replace")),
			wantErrs: []string{`metadata.annotations["machine-iac.io/drift-policy"]: Unsupported value: "Replace": "Replace" is no drift policy; ` +
				`write Report, Repair or Ignore`},
		},
		"and has no effect where there is a field for it": {
			machine: machineWith(withValue(generic(kubemark)), drifting("Ignore")),
			wantWarnings: []string{`metadata.annotations["machine-iac.io/drift-policy"]: it has no effect beside a TerraformMachineProviderSpec; ` +
				`set driftPolicy in the providerSpec`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := testRules(t, "").newMachine(tc.machine)
			if diff := cmp.Diff(tc.wantErrs, texts(got.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachineSetOfTheKindForAnyModule(t *testing.T) {
	set := setWith(withTemplate(generic(`,"module":"kubemark","credentialsSecret":{"name":"c"},"values":{"zone":"a/b"}`)))
	set.Spec.Template.Annotations = map[string]string{"machine-iac.io/drift-policy": "Ignore"}
	got := testRules(t, "").newMachineSet(set)
	wantErrs := []string{`providerSpec.values.zone: Invalid value: "a/b": the module "kubemark" does not allow "a/b"; ` +
		`region and zone become values of labels: write at most 63 letters, digits, '-', '_' and '.', for example zone: zone-a.`}
	if diff := cmp.Diff(wantErrs, texts(got.errs)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	wantWarnings := []string{`spec.template.metadata.annotations["machine-iac.io/drift-policy"]: it has no effect beside a ` +
		`TerraformMachineProviderSpec; set driftPolicy in the providerSpec`}
	if diff := cmp.Diff(wantWarnings, got.warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestADriftPolicyThatWasThereBeforeIsLetBe(t *testing.T) {
	rules := testRules(t, "")
	wrong := `metadata.annotations["machine-iac.io/drift-policy"]: Unsupported value: "x": "x" is no drift policy; write Report, Repair or Ignore`
	got := rules.changedMachine(machineWith(drifting("x")), machineWith(drifting("x"), builder.WithFinalizer()))
	if diff := cmp.Diff([]string{wrong + asBefore}, got.warnings); len(got.errs) > 0 || diff != "" {
		t.Errorf("%v (-want +got):\n%s", got.errs, diff)
	}
	got = rules.changedMachine(machineWith(), machineWith(drifting("x")))
	if diff := cmp.Diff([]string{wrong}, texts(got.errs)); diff != "" {
		t.Errorf("a new one (-want +got):\n%s", diff)
	}
	got = rules.changedMachine(machineWith(leaving()), machineWith(leaving(), drifting("x")))
	if len(got.errs) > 0 {
		t.Errorf("nothing keeps a Machine that is deleted from going, got %v", got.errs)
	}
}

func TestSecretsOfTheKindForAnyModuleAreLookedForWhereTheyAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		fields string
		want   []string
	}{
		"beside the values": {
			fields: `,"credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"}`,
			want: []string{
				`providerSpec.credentialsSecret: Invalid value: "c": not found. Expected CredentialsSecret to exist`,
				`providerSpec.userDataSecret: Invalid value: "u": not found. Expected UserDataSecret to exist`,
			},
		},
		"in the values": {
			fields: `,"values":{"credentialsSecret":{"name":"c"}}`,
			want:   []string{`providerSpec.values.credentialsSecret: Invalid value: "c": not found. Expected CredentialsSecret to exist`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			validator := &machineValidator{rules: testRules(t, ""), secrets: secretChecks{reader: &reader{exist: map[types.NamespacedName]bool{}}}}
			got, err := validator.ValidateCreate(t.Context(), machineWith(withValue(generic(`,"module":"kubemark"`+tc.fields))))
			if diff := cmp.Diff(tc.want, []string(got)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
