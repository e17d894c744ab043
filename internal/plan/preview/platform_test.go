package preview

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestReadTypesAProviderSpecWithoutAKindByThePlatform(t *testing.T) {
	served := moduletest.Load(t, moduletest.Change{
		"module.yaml", "      kind: ExampleProviderSpec\n", "      kind: ExampleProviderSpec\n      fieldNames: " +
			"CaseInsensitive\n  platform: Example\n",
	})
	catalog, err := module.NewCatalog(served)
	if err != nil {
		t.Fatal(err)
	}
	const text = `apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {name: one, namespace: machines}
spec:
  providerSpec:
    value:
      SIZE: %
      credentialssecret: {name: c}
`
	read := func(size string, values module.ClusterValues) ([]*Request, error) {
		requests, _, err := Read([]File{{Name: "f", Content: []byte(strings.Replace(text, "%", size, 1))}},
			Cluster{ID: "demo", ClusterValues: values}, catalog)
		return requests, err
	}
	known := module.ClusterValues{module.ValuePlatform: "Example"}
	requests, err := read("small", known)
	if err != nil || len(requests) != 1 || requests[0].Module != served {
		t.Fatalf("got %v, %v", requests, err)
	}
	for _, want := range []string{"incorrect GroupVersionKind for ExampleProviderSpec object: /, Kind=",
		"spec.providerSpec.value.SIZE: read as size; write it so"} {
		if got := strings.Join(requests[0].Warnings, "\n"); !strings.Contains(got, want) {
			t.Errorf("the warnings are\n%s\nwithout %s", got, want)
		}
	}
	if requests[0].Size == nil || requests[0].Size.CPU != 2 {
		t.Errorf("its size is %+v", requests[0].Size)
	}
	if _, err = read("[]", known); err == nil ||
		!strings.HasPrefix(err.Error(), "f:7: document 1, Machine machines/one: spec.providerSpec.value.size: ") {
		t.Errorf("got %v", err)
	}
	if _, err = read("small", nil); err == nil ||
		!strings.Contains(err.Error(), "OpenShift takes that of the cluster's platform: give --infrastructure, or "+
			"--cluster-fact platform=VALUE") {
		t.Errorf("got %v", err)
	}
}
