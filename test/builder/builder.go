// Package builder creates objects for tests: valid by default, with random names, changed by modifiers.
//
//	machine := builder.In(namespace, builder.Machine(func(m *machinev1beta1.Machine) {
//		m.Spec.Taints = taints
//	}))
//
// A modifier is a plain function on the object, so that a test can set any field, also to its zero value.
package builder

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultNamespace is the default namespace of objects.
const DefaultNamespace = "openshift-machine-api"

// Conventional labels of Machines.
const (
	ClusterLabel    = "machine.openshift.io/cluster-api-cluster"
	RoleLabel       = "machine.openshift.io/cluster-api-machine-role"
	TypeLabel       = "machine.openshift.io/cluster-api-machine-type"
	MachineSetLabel = "machine.openshift.io/cluster-api-machineset"
)

// ClusterID is the value of ClusterLabel on all objects.
const ClusterID = "test-cluster"

func In[T client.Object](namespace string, object T) T {
	object.SetNamespace(namespace)
	return object
}

func Name(prefix string) string {
	return prefix + "-" + rand.String(8)
}

// ProviderSpec returns a providerSpec of a kind that no actuator serves. It panics if it cannot encode fields.
func ProviderSpec(fields map[string]any) *runtime.RawExtension {
	content := map[string]any{"apiVersion": "machine.openshift.io/v1beta1", "kind": "TestMachineProviderSpec"}
	for key, value := range fields {
		content[key] = value
	}
	raw, err := json.Marshal(content)
	if err != nil {
		panic(fmt.Sprintf("encoding a providerSpec for a test: %v", err))
	}
	return &runtime.RawExtension{Raw: raw}
}

func apply[T any](object T, mods []func(T)) T {
	for _, mod := range mods {
		mod(object)
	}
	return object
}
