package render

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

func TestModuleFor(t *testing.T) {
	example, kubemark := exampleModule(t), kubemarkModule(t)
	stack := stackWith(t, "")
	catalog, err := module.NewCatalog(example, kubemark, stack)
	if err != nil {
		t.Fatal(err)
	}
	naming := func(name string) string { return strings.Replace(genericStart, `"example"`, name, 1) + `}` }
	tests := map[string]struct {
		raw     string
		want    *module.Module
		wantErr string
		fault   Fault
	}{
		"a kind that a module lists":      {raw: valid + `}`, want: example},
		"a module that is named":          {raw: naming(`"kubemark"`), want: kubemark},
		"a module that lists other kinds": {raw: naming(`"example"`), want: example},
		"a stack of a module's name":      {raw: stackStart + `}`, want: stack},
		"a stack that is not loaded": {
			raw: strings.Replace(stackStart, "example", "kubemark", 1) + `}`, fault: Unsupported,
			wantErr: `spec.providerSpec.value.stack: no stack is called "kubemark"; known are example; name one that is loaded`,
		},
		"no stack, but a module": {
			raw: strings.Replace(stackStart, `"stack"`, `"module"`, 1) + `}`, fault: Missing,
			wantErr: `spec.providerSpec.value.stack: the name of a stack is required, but it is missing; name a stack that is loaded`,
		},
		"a kind that none lists": {
			raw: `{"apiVersion":"a/v1","kind":"B"}`, fault: Unsupported,
			wantErr: `spec.providerSpec.value.kind: no provider module serves apiVersion "a/v1", kind "B"; known are example.io/v1 ExampleProviderSpec, ` +
				`kubemarkproviderconfig.openshift.io/v1alpha1 KubemarkMachineProviderConfig, ` +
				`machine-iac.io/v1alpha1 PulumiMachineProviderSpec, machine-iac.io/v1alpha1 TerraformMachineProviderSpec`,
		},
		"the generic kind in a version that there is not": {
			raw:   `{"apiVersion":"machine-iac.io/v9","kind":"TerraformMachineProviderSpec","module":"example"}`,
			fault: Unsupported,
			wantErr: `spec.providerSpec.value.kind: no provider module serves apiVersion "machine-iac.io/v9", kind "TerraformMachineProviderSpec"; ` +
				`known are example.io/v1 ExampleProviderSpec, kubemarkproviderconfig.openshift.io/v1alpha1 KubemarkMachineProviderConfig, ` +
				`machine-iac.io/v1alpha1 PulumiMachineProviderSpec, machine-iac.io/v1alpha1 TerraformMachineProviderSpec`,
		},
		"no kind": {
			raw: `{"apiVersion":"a/v1"}`, fault: Missing,
			wantErr: `spec.providerSpec.value.kind: a string is required, but it is missing; name a kind that a provider module serves`,
		},
		"a module that is not loaded": {
			raw: naming(`"aws"`), fault: Unsupported,
			wantErr: `spec.providerSpec.value.module: no provider module is called "aws"; known are example, kubemark; name one that is loaded`,
		},
		"no module": {
			raw: naming(`null`), fault: Missing,
			wantErr: `spec.providerSpec.value.module: the name of a provider module is required, but it is missing; name a provider module that is loaded`,
		},
		"a module that is a list": {
			raw:     naming(`["example"]`),
			wantErr: `spec.providerSpec.value.module: the name of a provider module is required, but it is a list; name a provider module that is loaded`,
		},
		"a name and a digest": {
			raw: naming(`"` + example.Reference() + `"`), fault: Unsupported,
			wantErr: `spec.providerSpec.value.module: no provider module is called "` + example.Reference()[:64] +
				`..."; known are example, kubemark; name one that is loaded`,
		},
		"no object": {raw: `[]`, wantErr: "spec.providerSpec.value: an object is required, but it is a list; write " +
			"the providerSpec of a provider module"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ModuleFor(catalog, machineWith(tc.raw), "")
			if got != tc.want || textOf(err) != tc.wantErr {
				t.Fatalf("want %v and %q, got %v and %v", tc.want, tc.wantErr, got, err)
			}
			if failed, ok := err.(Errors); err != nil && //nolint:errorlint // the test is of the returned type
				(!ok || failed[0].Fault != tc.fault) {
				t.Errorf("want the fault %d, got %+v", tc.fault, failed[0])
			}
		})
	}
	if _, err := ModuleFor(nil, nil, ""); err == nil || IsFieldError(err) {
		t.Errorf("want no catalogue to be a mistake of the caller, got %v", err)
	}
}
