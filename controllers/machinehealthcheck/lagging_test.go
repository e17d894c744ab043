package machinehealthcheck_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machine-iac/machine-iac-operator/controllers/machinehealthcheck"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// laggingClient reads Machines, MachineSets and Nodes from a snapshot, as from a cache whose watch
// has stalled.
type laggingClient struct {
	client.WithWatch
	snapshot client.Reader // nil: up to date
}

// stall freezes what the client reads of a namespace.
func (c *laggingClient) stall(ctx context.Context, namespace string) {
	GinkgoHelper()
	frozen := fake.NewClientBuilder().WithScheme(plane.Scheme)
	for _, list := range []client.ObjectList{&machinev1beta1.MachineList{}, &machinev1beta1.MachineSetList{}, &corev1.NodeList{}} {
		Expect(plane.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		frozen.WithLists(list)
	}
	c.snapshot = frozen.Build()
}

func (c *laggingClient) reader(of any) client.Reader {
	if _, check := of.(*unstructured.Unstructured); check || c.snapshot == nil {
		return c.WithWatch
	}
	return c.snapshot
}

func (c *laggingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.reader(object).Get(ctx, key, object, options...)
}

func (c *laggingClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.reader(list).List(ctx, list, options...)
}

var _ = Describe("A cache that lags", func() {
	const (
		yes, no = corev1.ConditionTrue, corev1.ConditionFalse
		allowed = machinev1beta1.RemediationAllowedCondition
	)
	var (
		namespace string
		cache     *laggingClient
		p         *passes
		check     *machinev1beta1.MachineHealthCheck
	)
	BeforeEach(func(ctx SpecContext) { namespace = suite.Namespace(ctx, plane) })

	begin := func(ctx context.Context, mods ...checkMod) {
		GinkgoHelper()
		check = builder.In(namespace, builder.MachineHealthCheck(mods...))
		create(ctx, check)
		p = byHand(check, now, func(options *machinehealthcheck.Options) {
			cache = &laggingClient{WithWatch: options.Client.(client.WithWatch)}
			options.Client = cache
		})
	}

	It("hides a second unhealthy Node: remediation is restricted all the same", func(ctx SpecContext) {
		first := onNode(namespace, no, ago(time.Hour)).create(ctx)
		second := onNode(namespace, yes, ago(2*time.Hour)).create(ctx)
		begin(ctx, builder.WithMaxUnhealthy("1"))
		cache.stall(ctx, namespace)
		second.turn(ctx, no, ago(time.Hour))

		got := p.next(ctx)
		Expect(living(ctx, first, second)()).To(HaveLen(2))
		Expect(got.events).To(ConsistOf("Warning RemediationRestricted"))
		Expect(conditionOf(ctx, check, allowed)()).To(Equal("False TooManyUnhealthy"))
		Expect(statusOf(ctx, check).CurrentHealthy).To(HaveValue(Equal(0)))
	})

	It("hides that a Node has recovered: its Machine stays", func(ctx SpecContext) {
		subject := onNode(namespace, no, ago(time.Hour)).create(ctx)
		begin(ctx)
		cache.stall(ctx, namespace)
		subject.turn(ctx, yes, ago(time.Minute))

		Expect(p.next(ctx).events).To(BeEmpty())
		Expect(living(ctx, subject)()).To(HaveLen(1))
		Expect(statusOf(ctx, check).CurrentHealthy).To(HaveValue(Equal(1)))
	})

	It("hides that the Machine is being deleted: it counts as unhealthy", func(ctx SpecContext) {
		first := onNode(namespace, no, ago(time.Hour)).create(ctx)
		second := onNode(namespace, yes, ago(time.Hour), builder.WithFinalizer()).create(ctx)
		begin(ctx, builder.WithMaxUnhealthy("1"))
		cache.stall(ctx, namespace)
		Expect(plane.Client.Delete(ctx, second.machine.DeepCopy())).To(Succeed())

		Expect(p.next(ctx).events).To(ConsistOf("Warning RemediationRestricted"))
		Expect(living(ctx, first)()).To(HaveLen(1))
	})

	It("hides that the MachineHealthCheck is paused: nothing is remediated", func(ctx SpecContext) {
		subject := onNode(namespace, no, ago(time.Hour)).create(ctx)
		begin(ctx)
		stale := &unstructured.Unstructured{}
		stale.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind("MachineHealthCheck"))
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(check), stale)).To(Succeed())
		p = byHand(check, now, func(options *machinehealthcheck.Options) {
			options.Checks = fake.NewClientBuilder().WithScheme(plane.Scheme).WithObjects(stale).Build()
		})
		pause := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`))
		Expect(plane.Client.Patch(ctx, check.DeepCopy(), pause)).To(Succeed())

		Expect(p.next(ctx).writes).To(BeEmpty())
		Expect(living(ctx, subject)()).To(HaveLen(1))
	})

	It("hides why a remediation was requested: the request stays", func(ctx SpecContext) {
		subject := onNode(namespace, yes, ago(2*time.Hour)).create(ctx)
		create(ctx, rebootTemplate(namespace, "reboot"))
		begin(ctx, rebooting("reboot"))
		cache.stall(ctx, namespace)
		subject.turn(ctx, no, ago(time.Hour))
		request := reboot(namespace, subject.machine.Name)
		request.SetOwnerReferences([]metav1.OwnerReference{
			{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "Machine", Name: subject.machine.Name, UID: subject.machine.UID},
		})
		create(ctx, request)

		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(request), request)).To(Succeed())
	})

	It("does nothing while the API server cannot be read, and gives Nodes time to report after that", func(ctx SpecContext) {
		recovers := onNode(namespace, no, ago(time.Hour)).create(ctx)
		stays := onNode(namespace, no, ago(time.Hour)).create(ctx)
		begin(ctx)
		clock := clocktesting.NewFakePassiveClock(now)
		cut := func(options *machinehealthcheck.Options) { options.Reader, options.Clock = unreachable{}, clock }
		got := byHand(check, now, cut).next(ctx)
		Expect(got.err).To(MatchError(errUnreachable))
		Expect(living(ctx, recovers, stays)()).To(HaveLen(2))

		By("coming back")
		p = byHand(check, now, func(options *machinehealthcheck.Options) { options.Clock, options.Settle = clock, time.Minute })
		got = p.next(ctx)
		Expect(got.after).To(Equal(time.Minute))
		Expect(living(ctx, recovers, stays)()).To(HaveLen(2))
		recovers.turn(ctx, yes, now)
		clock.SetTime(now.Add(time.Minute))
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(living(ctx, recovers, stays)()).To(ConsistOf(recovers.machine.Name))
	})

	It("costs nothing while there is nothing to remediate", func(ctx SpecContext) {
		onNode(namespace, yes, ago(time.Hour)).create(ctx)
		onNode(namespace, no, ago(time.Minute)).create(ctx)
		begin(ctx)
		p = byHand(check, now, func(options *machinehealthcheck.Options) { options.Reader = unread{} })
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
	})
})

var errUnreachable = errors.New("connect: no route to host")

// unreachable is an API server that cannot be read.
type unreachable struct{}

func (unreachable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errUnreachable
}

func (unreachable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errUnreachable
}

// unread fails the test when it is read.
type unread struct{}

func (unread) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	Fail("read " + key.String())
	return nil
}

func (unread) List(context.Context, client.ObjectList, ...client.ListOption) error {
	Fail("listed")
	return nil
}

var _ = Describe("A Machine that was remediated", func() {
	const (
		yes, no = corev1.ConditionTrue, corev1.ConditionFalse
		allowed = machinev1beta1.RemediationAllowedCondition
	)

	It("counts as unhealthy until its MachineSet has a healthy one in its place", func(ctx SpecContext) {
		namespace := suite.Namespace(ctx, plane)
		set := builder.In(namespace, builder.MachineSet(builder.WithReplicas(2)))
		create(ctx, set)
		ofSet := builder.WithOwner(set)
		first := onNode(namespace, no, ago(time.Hour), ofSet).create(ctx)
		second := onNode(namespace, yes, ago(time.Hour), ofSet).create(ctx)
		check := builder.In(namespace, builder.MachineHealthCheck(builder.WithMaxUnhealthy("1")))
		create(ctx, check)
		p := byHand(check, now)
		Expect(p.next(ctx).events).To(ConsistOf("Normal MachineDeleted"))
		Expect(living(ctx, first, second)()).To(ConsistOf(second.machine.Name))

		By("being gone, without another in its place")
		second.turn(ctx, no, ago(time.Hour))
		Expect(p.next(ctx).events).To(ConsistOf("Warning RemediationRestricted"))
		Expect(conditionOf(ctx, check, allowed)()).To(Equal("False TooManyUnhealthy"))
		Expect(byHand(check, now).next(ctx).events).To(ConsistOf("Warning RemediationRestricted"), "after a restart")

		By("having another in its place that is starting")
		third := withoutNode(namespace, ofSet).create(ctx)
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(living(ctx, second, third)()).To(HaveLen(2))

		By("having a healthy one in its place")
		node := builder.Node(builder.WithReady(yes, ago(time.Minute)))
		create(ctx, node)
		builder.WithNodeRef(node)(third.machine)
		Expect(plane.Client.Status().Update(ctx, third.machine)).To(Succeed())
		Expect(p.next(ctx).events).To(ConsistOf("Normal MachineDeleted"))
		Expect(living(ctx, second, third)()).To(ConsistOf(third.machine.Name))
	})
})
