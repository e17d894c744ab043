package machineset

import (
	"context"
	"errors"
	"fmt"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// many has a MachineSet with 300 Machines, whose status is written with an error.
type many struct {
	client.SubResourceWriter
	err error
}

var manyLabels = map[string]string{"set": "many"}

func (m *many) set() *machinev1beta1.MachineSet {
	set := &machinev1beta1.MachineSet{}
	set.Namespace, set.Name, set.UID = "ns", "many", "u"
	set.Spec.Replicas, set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = ptr.To[int32](300), manyLabels, manyLabels
	return set
}

func (m *many) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	m.set().DeepCopyInto(into.(*machinev1beta1.MachineSet))
	return nil
}

func (m *many) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	for i := range 300 {
		machine := machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Labels: manyLabels, OwnerReferences: []metav1.OwnerReference{ownerReference(m.set())},
		}}
		into.(*machinev1beta1.MachineList).Items = append(into.(*machinev1beta1.MachineList).Items, machine)
	}
	return nil
}

func (m *many) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return m.err
}

// manyClient is the client for it.
type manyClient struct {
	client.Client
	status *many
}

func (c manyClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	return c.status.Get(ctx, key, into, o...)
}

func (c manyClient) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	return c.status.List(ctx, into, o...)
}

func (c manyClient) Status() client.SubResourceWriter { return c.status }

// TestAReconcileThatFailedIsRepeatedByTheQueue: a pause would reset the queue's backoff.
func TestAReconcileThatFailedIsRepeatedByTheQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		waits bool
	}{
		"it succeeded": {nil, true},
		"it failed":    {errors.New("no writes today"), false},
	} {
		t.Run(name, func(t *testing.T) {
			fake := manyClient{status: &many{err: tc.err}}
			c, err := New(Options{Common: pipeline.Common{Client: fake, Reader: fake, Recorder: events.NewFakeRecorder(10)}})
			if err != nil {
				t.Fatal(err)
			}
			set := types.NamespacedName{Namespace: "ns", Name: "many"}
			if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: set}); !errors.Is(err, tc.err) {
				t.Fatalf("Reconcile: %v, want %v", err, tc.err)
			}
			if wait := c.pace.Wait(set); (wait > 0) != tc.waits {
				t.Errorf("the next reconcile waits %s; want a wait: %t", wait, tc.waits)
			}
		})
	}
}
