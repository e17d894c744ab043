package drain_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	kubeevents "k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/drain"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// laggingClient reads a Machine as it was before, as from a cache whose watch has stalled.
type laggingClient struct {
	client.Client
	before *machinev1beta1.Machine
}

func (c *laggingClient) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	c.before.DeepCopyInto(object.(*machinev1beta1.Machine))
	return nil
}

// A Machine that is taken for drained loses its instance.
var _ = DescribeTable("A cache that lags does not end the drain of a Machine of which it hides", func(
	ctx SpecContext, before func(*machinev1beta1.Machine), since func(*machinev1beta1.Machine, *corev1.Node),
) {
	w := newWorld(ctx)
	node := w.node(ctx)
	machine := w.deleting(ctx, node, before)
	stale := &machinev1beta1.Machine{}
	Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(machine), stale)).To(Succeed())
	since(machine, node)
	Expect(plane.Client.Update(ctx, machine.DeepCopy())).To(Succeed())
	status := machine.Status
	Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
	machine.Status = status
	Expect(plane.Client.Status().Update(ctx, machine)).To(Succeed())
	c, err := drain.New(drain.Options{
		Common:    pipeline.Common{Client: &laggingClient{plane.Client, stale}, Recorder: kubeevents.NewFakeRecorder(100)},
		Clientset: clientset(),
	})
	Expect(err).NotTo(HaveOccurred())

	result, err := c.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(machine)})
	Expect(err).NotTo(HaveOccurred())
	Expect(result.RequeueAfter).To(Equal(pipeline.ConflictRetry))
	Expect(drainedOf(ctx, machine)()).To(BeZero())
},
	Entry("the Node", func(m *machinev1beta1.Machine) { m.Status.NodeRef = nil },
		func(m *machinev1beta1.Machine, node *corev1.Node) { builder.WithNodeRef(node)(m) }),
	Entry("that it is to be drained after all", builder.WithAnnotations(map[string]string{"machine.openshift.io/exclude-node-draining": ""}),
		func(m *machinev1beta1.Machine, _ *corev1.Node) { m.Annotations = nil }),
	Entry("that it has more time", builder.WithAnnotations(map[string]string{
		drain.TimeoutAnnotation: "1m", drain.StartedAnnotation: time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
	}), func(m *machinev1beta1.Machine, _ *corev1.Node) { m.Annotations[drain.TimeoutAnnotation] = "24h" }),
)
