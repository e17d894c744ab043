package nodelink

import (
	"context"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// laggingClient reads from a snapshot, as from a cache whose watch has stalled.
type laggingClient struct {
	client.Client
	snapshot client.Reader
}

func (c laggingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.snapshot.Get(ctx, key, object, options...)
}

func (c laggingClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.snapshot.List(ctx, list, options...)
}

// A drain goes by the nodeRef: with that of another Node, it evicts the wrong pods, or none.
func TestACacheThatLagsLinksNoOtherNode(t *testing.T) {
	const ip = "10.0.0.1"
	for name, tc := range map[string]struct {
		since     func(t *testing.T, live client.Client, node *corev1.Node, machine *machinev1beta1.Machine)
		wantLink  bool
		wantRetry bool
	}{
		"nothing has changed": {since: func(*testing.T, client.Client, *corev1.Node, *machinev1beta1.Machine) {}, wantLink: true},
		"the Node is gone": {since: func(t *testing.T, live client.Client, node *corev1.Node, _ *machinev1beta1.Machine) {
			check(t, live.Delete(t.Context(), node))
		}},
		"another Node has the name": {since: func(t *testing.T, live client.Client, node *corev1.Node, _ *machinev1beta1.Machine) {
			check(t, live.Delete(t.Context(), node))
			again := node.DeepCopy()
			again.UID, again.ResourceVersion = "again", ""
			check(t, live.Create(t.Context(), again))
		}},
		"the Node has another address": {since: func(t *testing.T, live client.Client, node *corev1.Node, _ *machinev1beta1.Machine) {
			node.Status.Addresses[0].Address = "10.0.0.2"
			check(t, live.Status().Update(t.Context(), node))
		}},
		"the Machine has another address": {since: func(t *testing.T, live client.Client, _ *corev1.Node, machine *machinev1beta1.Machine) {
			machine.Status.Addresses[0].Address = "10.0.0.2"
			check(t, live.Status().Update(t.Context(), machine))
		}, wantRetry: true},
	} {
		t.Run(name, func(t *testing.T) {
			node := builder.Node(func(n *corev1.Node) { n.UID = "first" }, builder.WithNodeProviderID(""), builder.WithNodeInternalIPs(ip))
			machine := builder.Machine(builder.WithInternalIPs(ip))
			live := indexed(t, node, machine)
			for _, object := range []client.Object{node, machine} {
				check(t, live.Get(t.Context(), client.ObjectKeyFromObject(object), object))
			}
			cache := laggingClient{live, indexed(t, node.DeepCopy(), machine.DeepCopy())}
			tc.since(t, live, node.DeepCopy(), machine.DeepCopy())
			c, err := New(Options{Common: pipeline.Common{Client: cache, Reader: live, Recorder: events.NewFakeRecorder(9)}})
			check(t, err)

			result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(node)})
			check(t, err)
			check(t, live.Get(t.Context(), client.ObjectKeyFromObject(machine), machine))
			if linked := machine.Status.NodeRef != nil; linked != tc.wantLink {
				t.Errorf("got nodeRef %v, want one: %t", machine.Status.NodeRef, tc.wantLink)
			}
			if retries := result.RequeueAfter > 0; retries != tc.wantRetry {
				t.Errorf("requeued after %s, want that: %t", result.RequeueAfter, tc.wantRetry)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
