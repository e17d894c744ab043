package nodelink

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

func TestWhomAnObjectWakes(t *testing.T) {
	node := func(name, id string, ips ...string) *corev1.Node {
		return builder.Node(func(n *corev1.Node) { n.Name = name }, builder.WithNodeProviderID(id), builder.WithNodeInternalIPs(ips...))
	}
	machine := func(id string, ips ...string) *machinev1beta1.Machine {
		return builder.Machine(builder.WithProviderID(id), builder.WithInternalIPs(ips...))
	}
	type objects = []client.Object
	tcs := map[string]struct {
		there objects
		wakes client.Object
		want  []string
	}{
		"a Machine wakes the Node of its providerID": {objects{node("a", "p"), node("b", "q")}, machine("p"), []string{"a"}},
		"a Machine wakes every Node of its addresses": {
			objects{node("a", "", "10.0.0.1"), node("b", "", "10.0.0.2"), node("c", "", "10.0.0.3")}, machine("", "10.0.0.1", "10.0.0.2"), []string{"a", "b"},
		},
		"a Machine that goes wakes the Node, for a rival's sake": {
			objects{node("a", "", "10.0.0.1")},
			builder.Machine(builder.WithInternalIPs("10.0.0.1"), builder.DeletedAt(time.Unix(1, 0))), []string{"a"},
		},
		"a Machine without a Node wakes none": {objects{node("a", "p")}, machine("q"), nil},
		"a Node that goes wakes its rival":    {objects{node("b", "", "10.0.0.1"), machine("", "10.0.0.1")}, node("a", "", "10.0.0.1"), []string{"b"}},
		"a Node that goes without a Machine wakes none": {
			objects{node("b", "", "10.0.0.1")}, node("a", "", "10.0.0.1"), nil,
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			c := &Controller{client: indexed(t, tc.there...)}
			var woken []reconcile.Request
			if _, isNode := tc.wakes.(*corev1.Node); isNode {
				woken = c.competingNodes(t.Context(), tc.wakes)
			} else {
				woken = c.nodesForMachine(t.Context(), tc.wakes)
			}
			var got []string
			for _, request := range woken {
				got = append(got, request.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMatchingAndMachinesThatGo(t *testing.T) {
	node := builder.Node(builder.WithNodeProviderID(""), builder.WithNodeInternalIPs("10.0.0.1"))
	named := func(name string, mods ...func(*machinev1beta1.Machine)) client.Object {
		mods = append(mods, builder.WithInternalIPs("10.0.0.1"), func(m *machinev1beta1.Machine) { m.Name = name })
		return builder.Machine(mods...)
	}
	goes := builder.DeletedAt(time.Unix(1, 0))
	tcs := map[string]struct {
		machines  []client.Object
		want      string
		wantError bool
	}{
		"one that stays has no rival in one that goes": {[]client.Object{named("stays"), named("goes", goes)}, "stays", false},
		"one that goes is the Node's when it is alone": {[]client.Object{named("goes", goes)}, "goes", false},
		"two that stay are rivals":                     {[]client.Object{named("a"), named("b"), named("c", goes)}, "", true},
		"two that go are rivals":                       {[]client.Object{named("a", goes), named("b", goes)}, "", true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			step := &matchMachine{client: indexed(t, append(tc.machines, node)...), recorder: events.NewFakeRecorder(9)}
			s := &scope{node: node}
			proceed, err := step.Reconcile(t.Context(), s)
			if (err != nil) != tc.wantError || proceed != (tc.want != "") {
				t.Fatalf("got %v, %v; want an error: %v", proceed, err, tc.wantError)
			}
			if s.machine != nil && s.machine.Name != tc.want {
				t.Errorf("got Machine %s, want %s", s.machine.Name, tc.want)
			}
		})
	}
}

// indexed is a client over objects, with the indexes of the cache.
func indexed(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := controlplane.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&machinev1beta1.Machine{}).
		WithIndex(&machinev1beta1.Machine{}, providerIDIndex, of(machineProviderID)).
		WithIndex(&machinev1beta1.Machine{}, internalIPIndex, of(machineInternalIPs)).
		WithIndex(&corev1.Node{}, providerIDIndex, of(nodeProviderID)).
		WithIndex(&corev1.Node{}, internalIPIndex, of(nodeInternalIP)).
		Build()
}
