package machineset_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// laggingClient reads from a snapshot, as from a cache whose watch has stalled.
type laggingClient struct {
	client.Client
	snapshot client.Reader // up to date when nil
	moving   func()        // called after Machines were listed at the API server
}

// liveReader reads from the API server.
type liveReader struct {
	client.Client
	cache *laggingClient
}

func (r liveReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if r.cache.moving != nil {
		r.cache.moving()
	}
	return r.Client.List(ctx, list, options...)
}

// stall freezes what the client reads of a namespace.
func (c *laggingClient) stall(ctx context.Context, namespace string) {
	GinkgoHelper()
	machines, sets := &machinev1beta1.MachineList{}, &machinev1beta1.MachineSetList{}
	Expect(plane.Client.List(ctx, machines, client.InNamespace(namespace))).To(Succeed())
	Expect(plane.Client.List(ctx, sets, client.InNamespace(namespace))).To(Succeed())
	c.snapshot = fake.NewClientBuilder().WithScheme(plane.Scheme).WithLists(machines, sets).Build()
}

func (c *laggingClient) reader() client.Reader {
	if c.snapshot == nil {
		return c.Client
	}
	return c.snapshot
}

func (c *laggingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.reader().Get(ctx, key, object, options...)
}

func (c *laggingClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.reader().List(ctx, list, options...)
}

// unreachable is an API server that cannot be read.
type unreachable struct{ client.Reader }

func (unreachable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errConnection
}

var _ = Describe("A cache that lags", func() {
	var (
		namespace  string
		set        *machinev1beta1.MachineSet
		cache      *laggingClient
		controller *machineset.Controller
	)
	reconcile := func(ctx context.Context) {
		GinkgoHelper()
		_, err := controller.Reconcile(ctx, requestFor(set))
		Expect(err).NotTo(HaveOccurred())
	}
	names := func(ctx context.Context) []string {
		GinkgoHelper()
		var out []string
		for _, machine := range living(ctx, namespace) {
			out = append(out, machine.Name)
		}
		slices.Sort(out)
		return out
	}
	machine := func(name string) *machinev1beta1.Machine {
		out := &machinev1beta1.Machine{}
		out.Namespace, out.Name = namespace, name
		return out
	}
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		set = builder.In(namespace, builder.MachineSet(builder.WithReplicas(3)))
		set.Finalizers = []string{"example.com/keep"}
		create(ctx, set)
		cache = &laggingClient{Client: plane.Client}
		var err error
		controller, err = machineset.New(machineset.Options{Common: pipeline.Common{
			Client: cache, Reader: liveReader{plane.Client, cache}, Recorder: events.NewFakeRecorder(100),
		}, Shuffle: func(int, func(i, j int)) {}})
		Expect(err).NotTo(HaveOccurred())
		for range 3 {
			reconcile(ctx)
		}
		Expect(names(ctx)).To(HaveLen(3))
	})

	It("hides which Machine is to be deleted first: it is the one that is deleted", func(ctx SpecContext) {
		all := names(ctx)
		scale(ctx, set, 2)
		cache.stall(ctx, namespace) // an autoscaler marks before it scales, but Machines and MachineSets have a watch each
		mark := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"machine.openshift.io/delete-machine":"yes"}}}`))
		Expect(plane.Client.Patch(ctx, machine(all[2]), mark)).To(Succeed())
		reconcile(ctx)
		Expect(names(ctx)).To(Equal(all[:2]))
	})

	It("hides that a Machine is being deleted: no other is deleted", func(ctx SpecContext) {
		all := names(ctx)
		scale(ctx, set, 2)
		cache.stall(ctx, namespace)
		Expect(plane.Client.Delete(ctx, machine(all[2]))).To(Succeed())
		reconcile(ctx)
		Expect(names(ctx)).To(Equal(all[:2]))
	})

	It("hides that a MachineSet has shrunk: nothing is created", func(ctx SpecContext) {
		scale(ctx, set, 5)
		cache.stall(ctx, namespace)
		scale(ctx, set, 3)
		reconcile(ctx)
		Expect(names(ctx)).To(HaveLen(3))
	})

	It("hides that a MachineSet has grown: nothing is deleted", func(ctx SpecContext) {
		scale(ctx, set, 1)
		cache.stall(ctx, namespace)
		scale(ctx, set, 3)
		reconcile(ctx)
		Expect(names(ctx)).To(HaveLen(3))
	})

	It("is all there is while the API server cannot be read: nothing is created or deleted", func(ctx SpecContext) {
		cut, err := machineset.New(machineset.Options{Common: pipeline.Common{
			Client: cache, Reader: unreachable{}, Recorder: events.NewFakeRecorder(100)}})
		Expect(err).NotTo(HaveOccurred())
		for _, to := range []int32{5, 1} {
			scale(ctx, set, to)
			_, err := cut.Reconcile(ctx, requestFor(set))
			Expect(err).To(MatchError(errConnection))
			Expect(names(ctx)).To(HaveLen(3))
		}
	})

	It("hides that a MachineSet is being deleted: nothing is created", func(ctx SpecContext) {
		scale(ctx, set, 5)
		cache.stall(ctx, namespace)
		Expect(plane.Client.Delete(ctx, set)).To(Succeed())
		reconcile(ctx)
		Expect(names(ctx)).To(HaveLen(3))
	})

	Context("and a MachineDeployment that moves Machines", func() {
		annotate := func(ctx context.Context, object client.Object, patch string) {
			GinkgoHelper()
			Expect(plane.Client.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
		}
		const held = `{"metadata":{"annotations":{"machine-iac.io/held-by":"workers"}}}`
		owned := func(kind string) string {
			return `{"metadata":{"ownerReferences":[{"apiVersion":"machine.openshift.io/v1beta1","kind":"` + kind +
				`","name":"workers","uid":"u","controller":true}]}}`
		}

		It("creates and deletes nothing while it is held by its controller", func(ctx SpecContext) {
			annotate(ctx, set, held)
			annotate(ctx, set, owned("MachineDeployment"))
			for _, to := range []int32{5, 1} {
				scale(ctx, set, to)
				reconcile(ctx)
				Expect(names(ctx)).To(HaveLen(3))
			}
		})

		It("hides the hold: nothing is created", func(ctx SpecContext) {
			annotate(ctx, set, owned("MachineDeployment"))
			scale(ctx, set, 5)
			cache.stall(ctx, namespace)
			annotate(ctx, set, held)
			reconcile(ctx)
			Expect(names(ctx)).To(HaveLen(3))
		})

		It("obeys no hold of anything else, but that of a MachineDeployment that left it as an orphan", func(ctx SpecContext) {
			annotate(ctx, set, held)
			scale(ctx, set, 5)
			reconcile(ctx)
			Expect(names(ctx)).To(HaveLen(3), "a hold without a controller")
			annotate(ctx, set, owned("Other"))
			scale(ctx, set, 5)
			reconcile(ctx)
			Expect(names(ctx)).To(HaveLen(5), "a hold of another kind")
		})

		It("creates nothing for a Machine that moves away while Machines are listed", func(ctx SpecContext) {
			annotate(ctx, set, owned("MachineDeployment"))
			scale(ctx, set, 4)
			cache.moving = func() {
				annotate(ctx, set, held)
				Expect(plane.Client.Delete(ctx, machine(names(ctx)[0]))).To(Succeed()) // as good as moved
			}
			reconcile(ctx)
			Expect(names(ctx)).To(HaveLen(2))
		})
	})
})
