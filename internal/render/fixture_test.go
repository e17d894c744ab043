package render

import (
	"os"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

func exampleModule(t testing.TB) *module.Module {
	t.Helper()
	loaded, err := module.Load(os.DirFS("testdata/module"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// machineWith answers a Machine with the raw providerSpec.
func machineWith(providerSpec string) *machinev1beta1.Machine {
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", Namespace: "openshift-machine-api", UID: "uid-1"}}
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(providerSpec)}
	return machine
}

// valid is a providerSpec with everything that is required; more fields may follow the brace.
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
