package machineset_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	"github.com/onsi/gomega/types"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var _ = Describe("MachineSet", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	machines := func(ctx context.Context) []machinev1beta1.Machine { GinkgoHelper(); return living(ctx, namespace) }
	count := func(ctx context.Context) func() int { return func() int { return len(machines(ctx)) } }
	replicas := func(ctx context.Context, set *machinev1beta1.MachineSet) func() int32 {
		return func() int32 { GinkgoHelper(); return statusOf(ctx, set)().Replicas }
	}
	newSet := func(mods ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
		return builder.In(namespace, builder.MachineSet(mods...))
	}

	It("goes from none to 3 to 20 to 2, through the scale subresource", func(ctx SpecContext) {
		startManager(namespace)
		set := newSet(builder.WithReplicas(0))
		create(ctx, set)
		Eventually(statusOf(ctx, set)).Should(MatchFields(IgnoreExtras, Fields{
			"ObservedGeneration": Equal(set.Generation), "LabelSelector": Equal(metav1.FormatLabelSelector(&set.Spec.Selector)),
		}))
		for _, to := range []int32{3, 20, 2} {
			scale(ctx, set, to)
			Eventually(replicas(ctx, set)).Should(Equal(to))
			Consistently(count(ctx)).Should(BeEquivalentTo(to))
		}
		for _, machine := range machines(ctx) {
			Expect(machine.Name).To(MatchRegexp("^" + set.Name + "-[a-z0-9]{5}$"))
			Expect(machine.GenerateName).To(Equal(set.Name + "-"))
			Expect(machine.Labels).To(Equal(set.Spec.Template.Labels))
			Expect(machine.OwnerReferences).To(ConsistOf(*metav1.NewControllerRef(set, machinev1beta1.GroupVersion.WithKind("MachineSet"))))
		}
	})

	It("makes exactly 200 Machines when asked for 200, while the MachineSet is touched all the time", func(ctx SpecContext) {
		startManager(namespace)
		set := newSet(builder.WithReplicas(200))
		create(ctx, set)
		touch := 0
		Eventually(func() int {
			touch++
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"touch":"%d"}}}`, touch)
			Expect(plane.Client.Patch(ctx, set.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
			return len(machines(ctx))
		}).WithTimeout(60 * time.Second).Should(BeNumerically(">=", 200))
		Consistently(count(ctx)).WithTimeout(suite.Watch(time.Second)).Should(Equal(200))
		Eventually(replicas(ctx, set)).Should(BeEquivalentTo(200))
	})

	It("replaces a Machine that is being deleted, without waiting for it to go", func(ctx SpecContext) {
		startManager(namespace)
		set := newSet()
		create(ctx, set)
		Eventually(count(ctx)).Should(Equal(1))
		first := machines(ctx)[0]
		first.Finalizers = []string{builder.MachineFinalizer}
		Expect(plane.Client.Update(ctx, &first)).To(Succeed())
		Expect(plane.Client.Delete(ctx, &first)).To(Succeed())
		Eventually(count(ctx)).Should(Equal(1))
		Consistently(count(ctx)).Should(Equal(1))
		Expect(machines(ctx)[0].Name).NotTo(Equal(first.Name))
	})

	It("adopts a Machine that matches and belongs to nobody", func(ctx SpecContext) {
		set := newSet(builder.WithReplicas(2))
		orphan := builder.In(namespace, builder.Machine(builder.WithLabels(set.Spec.Template.Labels)))
		other := builder.In(namespace, builder.Machine())
		create(ctx, orphan, other, set)
		startManager(namespace)
		Eventually(replicas(ctx, set)).Should(BeEquivalentTo(2))
		Consistently(count(ctx)).Should(Equal(3))
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(orphan), orphan)).To(Succeed())
		Expect(metav1.IsControlledBy(orphan, set)).To(BeTrue())
		Expect(*metav1.GetControllerOf(orphan).BlockOwnerDeletion).To(BeTrue())
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
		Expect(other.OwnerReferences).To(BeEmpty())

		By("deleting a surplus when an orphan comes later")
		late := builder.In(namespace, builder.Machine(builder.WithLabels(set.Spec.Template.Labels)))
		create(ctx, late)
		Eventually(count(ctx)).Should(Equal(3))
		Consistently(count(ctx)).Should(Equal(3))
	})

	It("releases a Machine whose labels no longer match, and makes another", func(ctx SpecContext) {
		startManager(namespace)
		set := newSet()
		create(ctx, set)
		Eventually(count(ctx)).Should(Equal(1))
		first := machines(ctx)[0]
		patch := []byte(fmt.Sprintf(`{"metadata":{"labels":{%q:"debugging"}}}`, builder.MachineSetLabel))
		Expect(plane.Client.Patch(ctx, &first, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
		Eventually(func() []metav1.OwnerReference {
			Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(&first), &first)).To(Succeed())
			return first.OwnerReferences
		}).Should(BeEmpty())
		Eventually(count(ctx)).Should(Equal(2))
		Consistently(count(ctx)).Should(Equal(2))
	})

	It("leaves the Machines of another MachineSet with the same selector alone", func(ctx SpecContext) {
		first := newSet(builder.WithReplicas(3))
		second := newSet(builder.WithReplicas(2), builder.SelectingAs(first))
		orphans := []client.Object{first, second}
		for range 4 {
			orphans = append(orphans, builder.In(namespace, builder.Machine(builder.WithLabels(first.Spec.Template.Labels))))
		}
		create(ctx, orphans...)
		startManager(namespace)
		Eventually(replicas(ctx, first)).Should(BeEquivalentTo(3))
		Eventually(replicas(ctx, second)).Should(BeEquivalentTo(2))
		Eventually(count(ctx)).Should(Equal(5))
		settled := uidsOf(machines(ctx))
		Consistently(func() map[string]string { return uidsOf(machines(ctx)) }).Should(Equal(settled))

		scale(ctx, second, 0)
		Eventually(count(ctx)).Should(Equal(3))
		Consistently(count(ctx)).Should(Equal(3))
		for _, machine := range machines(ctx) {
			Expect(metav1.IsControlledBy(&machine, first)).To(BeTrue())
		}
	})

	It("makes no Machine twice when it dies in the middle and starts again", func(ctx SpecContext) {
		set := newSet(builder.WithReplicas(60))
		create(ctx, set)
		for range 4 {
			// Each manager is stopped while it is at it; its requests under way may or may not have
			// been carried out.
			stop := startManager(namespace)
			before := len(machines(ctx))
			Eventually(count(ctx)).Should(Or(BeNumerically(">", before), Equal(60)))
			stop()
		}
		startManager(namespace)
		Eventually(count(ctx)).Should(BeNumerically(">=", 60))
		Consistently(count(ctx)).WithTimeout(suite.Watch(time.Second)).Should(Equal(60))
	})

	It("asks the API server before it makes Machines that its cache lacks", func(ctx SpecContext) {
		set := newSet(builder.WithReplicas(3))
		create(ctx, set)
		for range 3 {
			create(ctx, builder.Machine(builder.WithOwner(set)))
		}
		clock := clocktesting.NewFakePassiveClock(time.Now())
		c, lists := blindController(clock, time.Minute)
		_, err := c.Reconcile(ctx, requestFor(set)) // takes spec.authoritativeAPI over, and no more
		Expect(err).NotTo(HaveOccurred())
		_, err = c.Reconcile(ctx, requestFor(set))
		Expect(err).NotTo(HaveOccurred())
		Expect(lists.Load()).To(BeEquivalentTo(1))
		Expect(count(ctx)()).To(Equal(3))

		By("waiting for the cache to show those that it makes")
		scale(ctx, set, 4)
		_, err = c.Reconcile(ctx, requestFor(set))
		Expect(err).NotTo(HaveOccurred())
		for range 3 {
			result, err := c.Reconcile(ctx, requestFor(set))
			Expect(err).NotTo(HaveOccurred())
			Expect(result.RequeueAfter).To(Equal(time.Minute))
		}
		Expect(lists.Load()).To(BeEquivalentTo(2), "one look at the API server is enough until the time is up")
		clock.SetTime(clock.Now().Add(time.Minute))
		_, err = c.Reconcile(ctx, requestFor(set))
		Expect(err).NotTo(HaveOccurred())
		Expect(lists.Load()).To(BeEquivalentTo(3))
		Expect(count(ctx)()).To(Equal(4))
	})

	It("neither makes nor deletes too many when responses are lost and requests never arrive", func(ctx SpecContext) {
		set := newSet(builder.WithReplicas(12))
		create(ctx, set)
		startManager(namespace, func(o *machineset.Options, mgr manager.Manager) {
			o.Client = &faultyClient{Client: mgr.GetClient()}
			o.InFlightTimeout = 500 * time.Millisecond
		})
		highest := 0
		Eventually(func() int { now := count(ctx)(); highest = max(highest, now); return now }).Should(Equal(12))
		Consistently(count(ctx)).Should(Equal(12))
		scale(ctx, set, 4)
		Eventually(func() int { now := count(ctx)(); Expect(now).To(BeNumerically(">=", 4)); return now }).Should(Equal(4))
		Consistently(count(ctx)).Should(Equal(4))
		Expect(highest).To(Equal(12))
	})

	It("reports Ready and available Machines as their Nodes turn", func(ctx SpecContext) {
		clock := clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)) // conditions have whole seconds
		startManager(namespace, func(o *machineset.Options, _ manager.Manager) { o.Clock = clock })
		set := newSet(builder.WithReplicas(2), builder.WithMinReadySeconds(1))
		create(ctx, set)
		Eventually(count(ctx)).Should(Equal(2))
		node := builder.Node(builder.WithReady(corev1.ConditionFalse, clock.Now()))
		create(ctx, node)
		machine := machines(ctx)[0]
		builder.WithNodeRef(node)(&machine)
		Expect(plane.Client.Status().Update(ctx, &machine)).To(Succeed())
		ready := func(ready, available int) types.GomegaMatcher {
			return MatchFields(IgnoreExtras, Fields{
				"Replicas": BeEquivalentTo(2), "FullyLabeledReplicas": BeEquivalentTo(2),
				"ReadyReplicas": BeEquivalentTo(ready), "AvailableReplicas": BeEquivalentTo(available),
			})
		}
		Eventually(statusOf(ctx, set)).Should(ready(0, 0))
		Consistently(statusOf(ctx, set)).Should(ready(0, 0))

		builder.WithReady(corev1.ConditionTrue, clock.Now())(node)
		Expect(plane.Client.Status().Update(ctx, node)).To(Succeed())
		Eventually(statusOf(ctx, set)).Should(ready(1, 0))
		clock.SetTime(clock.Now().Add(time.Minute))
		Eventually(statusOf(ctx, set)).Should(ready(1, 1), "by its own alarm")

		builder.WithReady(corev1.ConditionUnknown, clock.Now())(node)
		Expect(plane.Client.Status().Update(ctx, node)).To(Succeed())
		Eventually(statusOf(ctx, set)).Should(ready(0, 0))
	})

	It("says what is wrong with a MachineSet, and goes on once it is fixed", func(ctx SpecContext) {
		startManager(namespace)
		set := newSet(func(s *machinev1beta1.MachineSet) { s.Spec.Template.Labels = map[string]string{"none": "of these"} })
		create(ctx, set)
		Eventually(func() []string { return notes(ctx, namespace, "ReconcileError") }).Should(ContainElement(
			ContainSubstring("does not match spec.template.metadata.labels")))
		Expect(machines(ctx)).To(BeEmpty())

		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
		Expect(plane.Client.Update(ctx, set)).To(Succeed())
		Eventually(count(ctx)).Should(Equal(1))
	})

	It("does nothing for a MachineSet that is being deleted", func(ctx SpecContext) {
		startManager(namespace)
		set := newSet(func(s *machinev1beta1.MachineSet) { s.Finalizers = []string{"example.com/hold"} })
		create(ctx, set)
		Eventually(count(ctx)).Should(Equal(1))
		Expect(plane.Client.Delete(ctx, set)).To(Succeed())
		Expect(plane.Client.DeleteAllOf(ctx, &machinev1beta1.Machine{}, client.InNamespace(namespace))).To(Succeed())
		Consistently(count(ctx)).Should(BeZero())
	})

	It("pauses while another API is in charge", func(ctx SpecContext) {
		startManager(namespace)
		set := newSet(func(s *machinev1beta1.MachineSet) {
			s.Spec.AuthoritativeAPI = machinev1beta1.MachineAuthorityClusterAPI
		})
		create(ctx, set)
		paused := func() *machinev1beta1.Condition {
			for _, condition := range statusOf(ctx, set)().Conditions {
				if condition.Type == "Paused" {
					return &condition
				}
			}
			return nil
		}
		Eventually(paused).Should(PointTo(MatchFields(IgnoreExtras, Fields{
			"Status": Equal(corev1.ConditionTrue), "Reason": Equal("AuthoritativeAPINotMachineAPI"),
		})))
		Consistently(count(ctx)).Should(BeZero())

		for _, authority := range []machinev1beta1.MachineAuthority{"Migrating", "MachineAPI"} {
			patch := []byte(fmt.Sprintf(`{"status":{"authoritativeAPI":%q}}`, authority))
			Expect(plane.Client.Status().Patch(ctx, set, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
		}
		Eventually(count(ctx)).Should(Equal(1))
		Eventually(paused).Should(PointTo(MatchFields(IgnoreExtras, Fields{
			"Status": Equal(corev1.ConditionFalse), "Reason": Equal("AuthoritativeAPIMachineAPI"),
		})))
	})
})

func uidsOf(machines []machinev1beta1.Machine) map[string]string {
	out := map[string]string{}
	for _, machine := range machines {
		out[machine.Name] = string(metav1.GetControllerOf(&machine).UID)
	}
	return out
}
