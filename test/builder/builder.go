// Package builder makes objects for tests: valid as they come, with random names, changed by modifiers.
//
//	machine := builder.In(namespace, builder.Machine(builder.WithProviderID("test:///1"), func(m *machinev1beta1.Machine) {
//		m.Spec.Taints = taints
//	}))
//
// A modifier is a plain function over the object, so that a test can set any field, to its zero value too.
package builder

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultNamespace is where namespaced objects are put when a test does not say otherwise.
const DefaultNamespace = "openshift-machine-api"

// The labels that Machines carry by convention.
const (
	ClusterLabel    = "machine.openshift.io/cluster-api-cluster"
	RoleLabel       = "machine.openshift.io/cluster-api-machine-role"
	TypeLabel       = "machine.openshift.io/cluster-api-machine-type"
	MachineSetLabel = "machine.openshift.io/cluster-api-machineset"
)

// ClusterID is the value of ClusterLabel on everything built here.
const ClusterID = "test-cluster"

// In puts an object into a namespace.
func In[T client.Object](namespace string, object T) T {
	object.SetNamespace(namespace)
	return object
}

// Name returns a random name that starts with prefix.
func Name(prefix string) string {
	return prefix + "-" + rand.String(8)
}

// ProviderSpec returns a providerSpec of a kind that no actuator serves, with fields as its content. It panics when fields cannot
// be encoded, as only a mistake in a test can cause.
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
