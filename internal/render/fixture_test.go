package render

import (
	"os"
	"sync"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// Shared, immutable modules.
var (
	theExample  = sync.OnceValues(func() (*module.Module, error) { return load.Module(os.DirFS("testdata/module")) })
	theKubemark = sync.OnceValues(func() (*module.Module, error) { return load.Module(os.DirFS(kubemarkFolder)) })
)

func exampleModule(t testing.TB) *module.Module {
	t.Helper()
	loaded, err := theExample()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// machineWith returns a Machine with the raw providerSpec.
func machineWith(providerSpec string) *machinev1beta1.Machine {
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-1",
		Namespace: "openshift-machine-api", UID: "uid-1"}}
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(providerSpec)}
	return machine
}

// valid has all required fields. Append more fields and a closing brace.
const valid = `{"apiVersion":"example.io/v1","kind":"ExampleProviderSpec","size":"small","credentialsSecret":{"name":"c"}`

func inputWith(t testing.TB, providerSpec string) Input {
	t.Helper()
	return Input{
		Machine:     machineWith(providerSpec),
		ClusterID:   "demo",
		Module:      exampleModule(t),
		Credentials: map[string][]byte{"endpoint": []byte("https://example.com"), "token": []byte("t0p-secret")},
	}
}

const kubemarkFolder = "../../modules/kubemark"

func kubemarkModule(t testing.TB) *module.Module {
	t.Helper()
	loaded, err := theKubemark()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// kubemarkMachine returns a Machine from the template in the module's example.
func kubemarkMachine(t testing.TB) *machinev1beta1.Machine {
	t.Helper()
	raw, err := os.ReadFile(kubemarkFolder + "/examples/machineset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set machinev1beta1.MachineSet
	if err := yaml.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	template := set.Spec.Template
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{GenerateName: set.Name + "-",
		Namespace: set.Namespace, Labels: template.Labels}}
	machine.Spec = template.Spec
	return machine
}
