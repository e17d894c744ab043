package webhooks

import (
	"io/fs"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// testRules are those of one module, so that no other changes the results.
func testRules(t testing.TB, clusterID string) rules {
	t.Helper()
	return newRules(Options{Catalog: catalogOf(t, "kubemark"), ClusterID: clusterID})
}

// catalogOf returns a catalogue of one module.
func catalogOf(t testing.TB, name string) *module.Catalog {
	t.Helper()
	folder, err := fs.Sub(modules.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := load.Module(folder)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := module.NewCatalog(loaded)
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}

// kubemarkSpec returns a providerSpec of the module kubemark with more fields after those that are
// required.
func kubemarkSpec(fields string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(`{"apiVersion":"kubemarkproviderconfig.openshift.io/v1alpha1",` +
		`"kind":"KubemarkMachineProviderConfig","credentialsSecret":{"name":"c"}` + fields + `}`)}
}

func withValue(value *runtime.RawExtension) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Spec.ProviderSpec.Value = value }
}

func machineWith(mods ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
	return builder.Machine(append([]func(*machinev1beta1.Machine){withValue(kubemarkSpec("")), named("worker")}, mods...)...)
}

func named(name string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) { m.Name = name }
}

func leaving() func(*machinev1beta1.Machine) { return builder.DeletedAt(time.Unix(1e9, 0)) }

func withTemplate(value *runtime.RawExtension) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.Template.Spec.ProviderSpec.Value = value }
}

// setWith returns a MachineSet whose name and labels are always the same.
func setWith(mods ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	plain := func(s *machinev1beta1.MachineSet) {
		s.Name = "workers"
		s.Spec.Selector.MatchLabels[builder.MachineSetLabel] = s.Name
		s.Spec.Template.Labels[builder.MachineSetLabel] = s.Name
	}
	return builder.MachineSet(append([]func(*machinev1beta1.MachineSet){plain, withTemplate(kubemarkSpec(""))}, mods...)...)
}

func setLeaving() func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) {
		at := metav1.NewTime(time.Unix(1e9, 0))
		s.DeletionTimestamp, s.Finalizers = &at, []string{"foregroundDeletion"}
	}
}

// exampleSet returns the example of the module kubemark.
func exampleSet(t testing.TB) *machinev1beta1.MachineSet {
	t.Helper()
	raw, err := fs.ReadFile(modules.FS, "kubemark/examples/machineset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set := &machinev1beta1.MachineSet{}
	if err := yaml.UnmarshalStrict(raw, set); err != nil {
		t.Fatal(err)
	}
	return set
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}
