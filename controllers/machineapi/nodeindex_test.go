package machineapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestNodeIndex(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := machinev1beta1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	machine := func(name, node string) *machinev1beta1.Machine {
		out := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		if node != "" {
			out.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: node}
		}
		return out
	}
	const index NodeIndex = "test.node"
	cached := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(machine("a", "one"), machine("b", "two"), machine("c", "one"), machine("d", "")).
		WithIndex(&machinev1beta1.Machine{}, string(index), nodeName).Build()
	for name, tc := range map[string]struct {
		index NodeIndex
		node  string
		want  []string
	}{
		"those that refer to the Node":    {index, "one", []string{"a", "c"}},
		"a Node that nobody refers to":    {index, "three", nil},
		"without the index there is none": {"other", "one", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, machine := range tc.index.Machines(t.Context(), cached, tc.node) {
				got = append(got, machine.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
