package desired

import (
	"context"
	"errors"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// clusterNow is what is known of a cluster, or why it is not.
type clusterNow struct {
	known *module.Cluster
	err   error
}

func (c *clusterNow) Cluster(context.Context) (*module.Cluster, error) { return c.known, c.err }

// withVersion returns a store that lists the state of a Machine with a resource version.
func withVersion(machine *machinev1beta1.Machine, version string) *state.Store {
	key := state.KeyFor(machine.Namespace, machine.UID)
	return state.New(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			heads, ok := list.(*metav1.PartialObjectMetadataList)
			if !ok {
				return errors.New("more than metadata is listed")
			}
			heads.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: version}}}
			return nil
		},
	}), state.Options{Namespace: machine.Namespace})
}

func TestAChangeOfTheClusterIsNoticed(t *testing.T) {
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: "4b0c2d0e-9a2b-4a8e-8f5d-6f8f0d7a1c11"}}
	before := &module.Cluster{Region: "north"}
	for name, tc := range map[string]struct {
		basis Basis
		now   clusterNow
		want  bool
	}{
		"the same, read again":      {Basis{state: "7", cluster: before}, clusterNow{known: &module.Cluster{Region: "north"}}, true},
		"another":                   {Basis{state: "7", cluster: before}, clusterNow{known: &module.Cluster{Region: "south"}}, false},
		"it cannot be read":         {Basis{state: "7", cluster: before}, clusterNow{err: errors.New("forbidden")}, false},
		"nothing was known of it":   {Basis{state: "7"}, clusterNow{err: errors.New("forbidden")}, true},
		"another state, same as it": {Basis{state: "6", cluster: before}, clusterNow{known: before}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reader{states: withVersion(machine, "7"), cluster: &tc.now}
			if got := r.Unchanged(t.Context(), machine, &tc.basis); got != tc.want {
				t.Errorf("unchanged is %t, want %t", got, tc.want)
			}
		})
	}
}

func TestOnlyAPlainChoiceHasABasis(t *testing.T) {
	own, stored := &State{}, &lifecycle.Facts{Version: "7"}
	if (Choice{State: own}).Basis(stored) == nil {
		t.Error("a choice of the pinned module has none")
	}
	for name, basis := range map[string]*Basis{
		"nothing is desired":            Choice{}.Basis(stored),
		"there is no state":             Choice{State: own}.Basis(&lifecycle.Facts{}),
		"another module is withheld":    Choice{State: own, Withheld: errors.New("no")}.Basis(stored),
		"it is of another module":       Choice{State: own, Pinned: &State{}}.Basis(stored),
		"the pinned cannot be rendered": Choice{State: own, PinnedErr: errors.New("no")}.Basis(stored),
		"the pinned is missing":         Choice{State: &State{ModuleMissing: "gone"}}.Basis(stored),
	} {
		if basis != nil {
			t.Errorf("%s: there is a basis", name)
		}
	}
}
