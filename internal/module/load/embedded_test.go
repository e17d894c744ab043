package load_test

import (
	"slices"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
)

func TestEveryEmbeddedModuleKeepsTheContract(t *testing.T) {
	loaded, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := module.NewCatalog(loaded...)
	if err != nil {
		t.Fatal(err)
	}
	kubemark, err := catalog.Find("kubemarkproviderconfig.openshift.io/v1alpha1", "KubemarkMachineProviderConfig")
	if err != nil {
		t.Fatal(err)
	}
	// These are OpenTofu's own words for a Node that is not there, seen with gavinbunney/kubectl 1.19.0.
	if !kubemark.Absent(`failed to get resource v1 Node worker-1 from kubernetes: nodes "worker-1" not found: `) {
		t.Error("want kubemark to know how its provider says that there is no Node")
	}
	for _, one := range loaded {
		if one.Spec().Capacity == nil {
			t.Errorf("module %s does not say how large an instance is, so that its MachineSets cannot grow from zero", one.Name())
		}
	}
}

func TestWhatIsEmbeddedIsReadOnce(t *testing.T) {
	first, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	want := first[0]
	first[0] = nil // a list belongs to whom it was returned to
	again, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	if again[0] != want {
		t.Errorf("the second time it is %p, want %p", again[0], want)
	}
	programs, err := load.Modules(stacks.FS)
	if err != nil || slices.Contains(programs, want) {
		t.Errorf("the stacks are %v, %v", programs, err)
	}
}

func TestEveryEmbeddedStackKeepsTheContractBesideTheModules(t *testing.T) {
	loaded, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	built, err := load.Modules(stacks.FS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := module.NewCatalog(append(loaded, built...)...); err != nil {
		t.Error(err)
	}
	for _, one := range built {
		if len(one.Spec().ProviderSpecs) > 0 || one.Spec().Capacity == nil {
			t.Errorf("stack %s claims a kind that a module may serve, or does not say how large an instance is", one.Name())
		}
	}
}
