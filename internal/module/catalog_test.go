package module_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestCatalog(t *testing.T) {
	first := moduletest.Load(t)
	second := moduletest.Load(t, moduletest.Change{"module.yaml", "name: example", "name: second"}, moduletest.Change{"module.yaml", "kind: ExampleProviderSpec", "kind: SecondProviderSpec"})
	catalog, err := module.NewCatalog(second, first)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := catalog.Find("example.io/v1beta1", "SecondProviderSpec"); err != nil || found != second {
		t.Errorf("want the second module, got %v, %v", found, err)
	}
	if !first.Serves("example.io/v1", "ExampleProviderSpec") || first.Serves("example.io/v2", "ExampleProviderSpec") {
		t.Error("want Serves to go by apiVersion and kind")
	}
	if got := catalog.Modules(); !slices.Equal(got, []*module.Module{first, second}) {
		t.Errorf("want both modules sorted by name, got %v", got)
	}
	_, err = catalog.Find("example.io/v2", "ExampleProviderSpec")
	want := &module.UnknownKindError{APIVersion: "example.io/v2", Kind: "ExampleProviderSpec", Known: []string{
		"example.io/v1 ExampleProviderSpec", "example.io/v1 SecondProviderSpec",
		"example.io/v1beta1 ExampleProviderSpec", "example.io/v1beta1 SecondProviderSpec",
		"machine-iac.io/v1alpha1 TerraformMachineProviderSpec",
	}}
	var got *module.UnknownKindError
	if !errors.As(err, &got) {
		t.Fatalf("want an module.UnknownKindError, got %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCatalogFindsAModuleByName(t *testing.T) {
	first := moduletest.Load(t)
	second := moduletest.Load(t, moduletest.Change{"module.yaml", "name: example", "name: second"}, moduletest.Change{"module.yaml",
		"  providerSpecs:\n    - apiVersions: [example.io/v1, example.io/v1beta1]\n      kind: ExampleProviderSpec\n", ""})
	catalog, err := module.NewCatalog(second, first)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := catalog.Named(v1alpha1.EngineTerraform, "second"); err != nil || found != second {
		t.Errorf("want the second module, got %v, %v", found, err)
	}
	_, err = catalog.Named(v1alpha1.EngineTerraform, "Second")
	if want := `no provider module is called "Second"; known are example, second`; err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
	empty, err := module.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	_, err = empty.Named(v1alpha1.EngineTerraform, "example")
	if want := `no provider module is called "example"; no provider module is loaded`; err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
	var unknown *module.UnknownKindError
	if _, err = empty.Find("a/v1", "B"); !errors.As(err, &unknown) || len(unknown.Known) != 0 {
		t.Errorf("want no kind known where there is no module, got %v", err)
	}
}

func TestCatalogRefusesWhatIsAmbiguous(t *testing.T) {
	tests := map[string]struct {
		changes []moduletest.Change
		wantErr string
	}{
		"two modules of one name":     {wantErr: `two modules are called "example"`},
		"two modules serve one kind":  {changes: []moduletest.Change{{"module.yaml", "name: example", "name: other"}}, wantErr: `"example" and "other" both serve example.io/v1 ExampleProviderSpec`},
		"the later version is shared": {changes: []moduletest.Change{{"module.yaml", "name: example", "name: other"}, {"module.yaml", "example.io/v1,", "example.io/v2,"}}, wantErr: "both serve example.io/v1beta1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := module.NewCatalog(moduletest.Load(t), moduletest.Load(t, tc.changes...))
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("want an error with %q, got %v", tc.wantErr, err)
			}
		})
	}
}
