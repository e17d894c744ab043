package modules_test

import (
	"encoding/json"
	"os"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// TestAClassOfGardenerIsTaken has the module for Azure take what Gardener's driver makes of a class of Gardener's provider for Azure. A test of the driver
// holds it to the same file.
func TestAClassOfGardenerIsTaken(t *testing.T) {
	content, err := os.ReadFile("../gardener/azure/testdata/module.json")
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(content, &spec); err != nil {
		t.Fatal(err)
	}
	// As the driver adds them.
	spec["credentialsSecret"], spec["userDataSecret"] = map[string]any{"name": "cloudprovider-machine-iac"}, map[string]any{"name": "m-user-data"}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m", Namespace: "shoot--demo", Labels: map[string]string{machinev1beta1.MachineClusterIDLabel: "shoot--demo"},
	}}
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	azure := keptIn(t, "azure").Module
	// That data disks are there at the first boot, which it warns of, is so with Gardener's provider too.
	if _, err := render.Check(render.Input{Machine: machine, ClusterID: "shoot--demo", Module: azure}); err != nil {
		t.Fatal(err)
	}
	providerSpec, err := render.ProviderSpec(machine, azure)
	if err != nil {
		t.Fatal(err)
	}
	if size, err := module.SizeOf(azure, providerSpec); err != nil || size.CPU != 4 {
		t.Errorf("the size is %+v, %v", size, err)
	}
}
