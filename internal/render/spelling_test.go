package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// foldingModule returns moduletest's module with a case-insensitive kind of a platform, and one default.
func foldingModule(t *testing.T) *module.Module {
	t.Helper()
	return moduletest.Load(t,
		moduletest.Change{"module.yaml", "      kind: ExampleProviderSpec\n",
			"      kind: ExampleProviderSpec\n      fieldNames: CaseInsensitive\n  platform: Example\n  defaults:\n  " +
				"  - {path: userDataSecret.name, value: user-data}\n"},
		moduletest.Change{"variables.tf", "disks             = optional(list(object({ gib = number })), [])",
			"disks = optional(list(object({ gib = number })), [])\n    tags = optional(map(string), {})\n    parts = " +
				"optional(map(object({ sizeGiB = number })), {})"},
	)
}

func TestNamesOfFieldsInAnyCase(t *testing.T) {
	const start = `{"apiVersion":"example.io/v1","kind":"ExampleProviderSpec",`
	for name, tc := range map[string]struct {
		raw, want    string
		wantErr      string
		wantWarnings []string
	}{
		"the exact names": {
			raw:  `"size":"small","credentialsSecret":{"name":"c"}}`,
			want: `"size":"small"`,
		},
		"another case, in objects, lists and maps": {
			raw:  `"SIZE":"small","credentialssecret":{"Name":"c"},"Disks":[{"GiB":4}],"parts":{"A":{"sizegib":1}}}`,
			want: `"disks":[{"gib":4}]`,
			wantWarnings: []string{
				"spec.providerSpec.value.Disks: read as disks; write it so",
				"spec.providerSpec.value.disks[0].GiB: read as gib; write it so",
				"spec.providerSpec.value.SIZE: read as size; write it so",
				"spec.providerSpec.value.credentialssecret: read as credentialsSecret; write it so",
				"spec.providerSpec.value.credentialsSecret.Name: read as name; write it so",
				"spec.providerSpec.value.parts.A.sizegib: read as sizeGiB; write it so",
			},
		},
		"keys of maps stay": {
			raw:  `"size":"small","credentialsSecret":{"name":"c"},"tags":{"Size":"a","size":"b"}}`,
			want: `"tags":{"Size":"a","size":"b"}`,
		},
		"the folding of encoding/json": { // the long s folds to s, and the kelvin sign to K
			raw:  "\"\u017fize\":\"small\",\"credentialsSecret\":{\"name\":\"c\"},\"dis\u212as\":[]}",
			want: `"size":"small"`,
			wantWarnings: []string{
				"spec.providerSpec.value.disKs: read as disks; write it so",
				"spec.providerSpec.value[\"\u017fize\"]: read as size; write it so",
			},
		},
		"two spellings": {
			raw:     `"size":"small","Size":"large","credentialsSecret":{"name":"c"}}`,
			wantErr: "spec.providerSpec.value.size: it is given twice, as Size and as size; keep one, as size",
		},
		"what is in no case a field": {
			raw: `"size":"small","credentialsSecret":{"name":"c"},"s_ize":"x"}`, want: `"size":"small"`,
			wantWarnings: []string{"spec.providerSpec.value.s_ize: unknown field, ignored; write it as size"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := inputWith(t, start+tc.raw)
			input.Module = foldingModule(t)
			inputs, err := Render(input)
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("got %v, want %s", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(inputs.Variables), tc.want) {
				t.Errorf("%s has not %s", inputs.Variables, tc.want)
			}
			var warnings []string
			for _, one := range inputs.Warnings {
				warnings = append(warnings, one.String())
			}
			if diff := cmp.Diff(tc.wantWarnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if ref, _, err := Refs(input.Machine, input.Module); err != nil || ref.Name != "c" {
				t.Errorf("the credentials are %v, %v", ref, err)
			}
		})
	}
}

// TestKubemarkManifestsOfTheMachineAPI renders what the manuals of cluster-api-provider-kubemark write.
func TestKubemarkManifestsOfTheMachineAPI(t *testing.T) {
	machine := kubemarkMachine(t)
	machine.Spec.ProviderSpec.Value.Raw = []byte(`{"apiVersion": "kubemarkproviderconfig.k8s.io/v1alpha1",
		"kind": "KubemarkMachineProviderConfig", "image": "gofed/kubemark:v1.11.3-6", "deletionTimeout": "30s",
		"numCores": 2, "memoryCapacity": "4G"}`)
	catalog, err := module.NewCatalog(kubemarkModule(t))
	if err != nil {
		t.Fatal(err)
	}
	if served, err := ModuleFor(catalog, machine, ""); err != nil || served.Name() != "kubemark" {
		t.Fatalf("got %v, %v", served, err)
	}
	completed, _ := Complete(machine, kubemarkModule(t), nil)
	inputs, err := Render(Input{Machine: completed, Module: kubemarkModule(t), ClusterID: "demo", Credentials: map[string][]byte{
		"server": []byte("https://kubernetes.default.svc"), "token": []byte("t"), "ca.crt": []byte("c"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"cpu":2`, `"memory":"4G"`, `"credentialsSecret":{"name":"kubemark-credentials"}`} {
		if !strings.Contains(string(inputs.Variables), want) {
			t.Errorf("%s has not %s", inputs.Variables, want)
		}
	}
	var warnings []string
	for _, one := range inputs.Warnings {
		warnings = append(warnings, one.String())
	}
	want := []string{
		"incorrect GroupVersionKind for KubemarkMachineProviderConfig object: kubemarkproviderconfig.k8s.io/v1alpha1, Kind=KubemarkMachineProviderConfig",
		"spec.providerSpec.value.memoryCapacity: read as memory; write it so",
		"spec.providerSpec.value.numCores: read as cpu; write it so",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	completed.Spec.ProviderSpec.Value.Raw = []byte(`{"kind": "KubemarkMachineProviderConfig", "cpu": 4, "numCores": 2}`)
	_, err = Render(Input{Machine: completed, Module: kubemarkModule(t), ClusterID: "demo"})
	if want := "spec.providerSpec.value.cpu: it is given twice, as cpu and as numCores; keep one, as cpu"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOtherKindsAreExact(t *testing.T) {
	_, err := Render(inputWith(t, strings.Replace(valid, "size", "Size", 1)+"}"))
	if err == nil || !strings.Contains(err.Error(), "size: a string is required, but it is missing") {
		t.Errorf("got %v", err)
	}
}

func TestDefaultsKeepTheSpellingOfTheAuthor(t *testing.T) {
	for raw, want := range map[string]string{
		`{"kind":"ExampleProviderSpec","UserDataSecret":{}}`:             `{"UserDataSecret":{"name":"user-data"},"kind":"ExampleProviderSpec"}`,
		`{"kind":"ExampleProviderSpec","userdatasecret":{"NAME":""}}`:    `{"kind":"ExampleProviderSpec","userdatasecret":{"NAME":"user-data"}}`,
		`{"kind":"ExampleProviderSpec","userdatasecret":{"Name":"own"}}`: `{"kind":"ExampleProviderSpec","userdatasecret":{"Name":"own"}}`,
		`{"size":"small"}`: `{"size":"small","userDataSecret":{"name":"user-data"}}`,
	} {
		completed, _ := Complete(machineWith(raw), foldingModule(t), nil)
		if got := string(completed.Spec.ProviderSpec.Value.Raw); got != want {
			t.Errorf("%s becomes %s, want %s", raw, got, want)
		}
	}
}

func TestAProviderSpecWithoutAKindIsOfThePlatform(t *testing.T) {
	folding := foldingModule(t)
	catalog, err := module.NewCatalog(folding, kubemarkModule(t))
	if err != nil {
		t.Fatal(err)
	}
	input := inputWith(t, `{"size":"small","credentialsSecret":{"name":"c"}}`)
	if _, err := ModuleFor(catalog, input.Machine, "Other"); err == nil ||
		!strings.Contains(err.Error(), "value.kind: a string is required") {
		t.Errorf("on another platform: %v", err)
	}
	if input.Module, err = ModuleFor(catalog, input.Machine, "Example"); err != nil || input.Module != folding {
		t.Fatalf("got %v, %v", input.Module, err)
	}
	warnings, err := Check(input)
	if err != nil || len(warnings) != 1 || warnings[0].String() != "incorrect GroupVersionKind for "+
		"ExampleProviderSpec object: /, Kind=" {
		t.Errorf("got %v, %v", warnings, err)
	}
	if served, err := ModuleFor(catalog, machineWith(`{"apiVersion":"a/v1","kind":"KubemarkMachineProviderConfig"}`),
		"Example"); err != nil || served == folding {
		t.Errorf("a kind that is written counts: %v, %v", served, err)
	}
}

func TestAKindThatIsNearlyRightSuggestsTheNearest(t *testing.T) {
	catalog, err := module.NewCatalog(foldingModule(t), kubemarkModule(t))
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"ExampleProviderSpecs": "did you mean ExampleProviderSpec? known are ",
		"exampleproviderspec":  "did you mean ExampleProviderSpec? ",
		"ExmpleProvidrSpec":    "did you mean ExampleProviderSpec? ", "B": `kind "B"; known are `,
		"ExampleMachineSpec": `"ExampleMachineSpec"; known are `,
	} {
		_, err := ModuleFor(catalog, machineWith(`{"apiVersion":"example.io/v1","kind":"`+kind+`"}`), "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", kind, err, want)
		}
	}
}
