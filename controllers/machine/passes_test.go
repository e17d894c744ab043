package machine_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

const (
	patchedMachine = "patch *v1beta1.Machine"
	patchedStatus  = "patch status of *v1beta1.Machine"
	deletedNode    = "delete *v1.Node"
)

var _ = Describe("A pass", func() {
	var (
		namespace string
		actuator  *fake.Actuator
		subject   *machinev1beta1.Machine
	)
	BeforeEach(func(ctx SpecContext) {
		var err error
		namespace, err = plane.Namespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		actuator = &fake.Actuator{}
		subject = builder.In(namespace, builder.Machine())
		create(ctx, subject)
	})
	calls := func(before int) []fake.Verb {
		var verbs []fake.Verb
		for _, call := range actuator.Calls()[before:] {
			verbs = append(verbs, call.Verb)
		}
		return verbs
	}
	// expect runs the next pass and compares what it called, what it wrote and the phase it left.
	expect := func(ctx context.Context, p *passes, verbs []fake.Verb, writes []string, phase string) time.Duration {
		GinkgoHelper()
		before := len(actuator.Calls())
		wrote, result := p.next(ctx)
		Expect(calls(before)).To(Equal(verbs))
		Expect(wrote).To(Equal(writes))
		Expect(ptr.Deref(fresh(ctx, subject).Status.Phase, "")).To(Equal(phase))
		return result.RequeueAfter
	}

	It("tries a changed spec again after a failure, although its status cannot be written at first", func(ctx SpecContext) {
		actuator.Fail(fake.Create, actuators.InvalidConfiguration("cpu: a number is required"))
		p := byHand(subject, actuator, plane.Client)
		for range 3 {
			p.next(ctx)
		}
		Expect(fresh(ctx, subject).Status.Phase).To(HaveValue(Equal(machinev1beta1.PhaseFailed)))
		edit(ctx, subject, func(m *machinev1beta1.Machine) { m.Spec.Labels = map[string]string{"changed": "true"} })
		p.client.beforeStatus = func() { // as a run does that has begun
			p.client.beforeStatus = nil
			edit(ctx, subject, func(m *machinev1beta1.Machine) { m.Annotations["machine-iac.io/instance"] = "{}" })
		}
		actuator.Fail(fake.Create, nil)
		p.next(ctx)
		Expect(fresh(ctx, subject).Status.Phase).To(HaveValue(Equal(machinev1beta1.PhaseFailed)))
		p.next(ctx)
		Expect(fresh(ctx, subject).Status.Phase).NotTo(HaveValue(Equal(machinev1beta1.PhaseFailed)))
	})

	It("does one thing at a time, in the order of the Machine API, and writes the status once at most", func(ctx SpecContext) {
		p := byHand(subject, actuator, plane.Client)
		By("taking hold of it")
		expect(ctx, p, nil, []string{patchedMachine}, "")
		Expect(fresh(ctx, subject).Finalizers).To(ConsistOf(machinev1beta1.MachineFinalizer))
		By("making the instance")
		Expect(expect(ctx, p, []fake.Verb{fake.Exists, fake.Create}, []string{patchedMachine, patchedStatus}, "Provisioning")).To(Equal(30 * time.Second))
		By("finding it")
		Expect(expect(ctx, p, []fake.Verb{fake.Exists, fake.Update}, []string{patchedStatus}, "Provisioned")).To(Equal(30 * time.Second))
		By("resting until its Node comes")
		Expect(expect(ctx, p, []fake.Verb{fake.Exists, fake.Update}, nil, "Provisioned")).To(Equal(30 * time.Second))
		node := link(ctx, subject)
		Expect(expect(ctx, p, []fake.Verb{fake.Exists, fake.Update}, []string{patchedStatus}, "Running")).To(BeZero())
		By("resting")
		version := fresh(ctx, subject).ResourceVersion
		for range 3 {
			Expect(expect(ctx, p, []fake.Verb{fake.Exists, fake.Update}, nil, "Running")).To(BeZero())
		}
		Expect(fresh(ctx, subject).ResourceVersion).To(Equal(version))

		By("waiting until its Node is drained")
		Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		Expect(expect(ctx, p, []fake.Verb{fake.Exists}, []string{patchedStatus}, "Deleting")).To(BeZero())
		Expect(expect(ctx, p, nil, nil, "Deleting")).To(BeZero())
		drain(ctx, subject, corev1.ConditionFalse)
		Expect(expect(ctx, p, nil, nil, "Deleting")).To(BeZero())
		drain(ctx, subject, corev1.ConditionTrue)
		By("having the instance removed")
		actuator.Steps = 1
		expect(ctx, p, []fake.Verb{fake.Delete}, nil, "Deleting")
		By("letting go")
		before := len(actuator.Calls())
		wrote, _ := p.next(ctx)
		Expect(calls(before)).To(Equal([]fake.Verb{fake.Delete, fake.Exists}))
		Expect(wrote).To(Equal([]string{deletedNode, patchedMachine}))
		Expect(gone(ctx, subject)()).To(BeTrue())
		Expect(gone(ctx, node)()).To(BeTrue())
		By("finding nothing")
		before = len(actuator.Calls())
		wrote, _ = p.next(ctx)
		Expect(calls(before)).To(BeEmpty())
		Expect(wrote).To(BeEmpty())
	})

	Context("of a Machine that is settled", func() {
		var (
			checker *checking
			p       *passes
		)
		BeforeEach(func(ctx SpecContext) {
			checker = &checking{Actuator: actuator, unchanged: true}
			p = byHand(subject, checker, plane.Client)
			for range 3 {
				p.next(ctx)
			}
			link(ctx, subject)
			expect(ctx, p, []fake.Verb{fake.Exists, fake.Update}, []string{patchedStatus}, "Running")
			Expect(checker.asked).To(BeZero(), "while there was something to do")
		})

		It("asks whether anything has changed, and no more", func(ctx SpecContext) {
			expect(ctx, p, []fake.Verb{fake.Exists, fake.Update}, nil, "Running")
			Expect(expect(ctx, p, nil, nil, "Running")).To(Equal(time.Hour))
			checker.unchanged = false
			expect(ctx, p, []fake.Verb{fake.Exists, fake.Update}, nil, "Running")
			Expect(checker.asked).To(Equal(2))
		})

		It("is whole after any change of the Machine", func(ctx SpecContext) {
			p.next(ctx)
			touch(ctx, subject)
			expect(ctx, p, []fake.Verb{fake.Exists, fake.Update}, nil, "Running")
			Expect(checker.asked).To(BeZero())
		})

		It("is whole after one that failed, or whose write did", func(ctx SpecContext) {
			p.next(ctx)
			checker.unchanged = false
			actuator.Fail(fake.Exists, errors.New("connection refused"))
			_, _, err := p.try(ctx)
			Expect(err).To(HaveOccurred())
			checker.unchanged, checker.asked = true, 0
			p.client.failStatus = errors.New("connection refused")
			_, _, err = p.try(ctx)
			Expect(err).To(HaveOccurred())
			p.client.failStatus = nil
			expect(ctx, p, []fake.Verb{fake.Exists, fake.Update}, []string{patchedStatus}, "Running")
			Expect(checker.asked).To(BeZero())
		})

		It("is whole when it is deleted", func(ctx SpecContext) {
			p.next(ctx)
			Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
			expect(ctx, p, []fake.Verb{fake.Exists}, []string{patchedStatus}, "Deleting")
			Expect(checker.asked).To(BeZero())
		})
	})

	Context("on a cache that has fallen behind", func() {
		var (
			cache *staleClient
			p     *passes
		)
		// frozenAfter runs passes, and from then on shows the Machine as it was before the last of
		// them.
		frozenAfter := func(ctx context.Context, count int) {
			GinkgoHelper()
			cache = &staleClient{Client: plane.Client}
			p = byHand(subject, actuator, cache)
			var before *machinev1beta1.Machine
			for range count {
				before = fresh(ctx, subject)
				p.next(ctx)
			}
			cache.frozen = before
		}

		It("has no say in what was known since", func(ctx SpecContext) {
			frozenAfter(ctx, 4)
			cache.frozen = nil
			actuator.Vanish(subject.UID)
			cache.frozen = fresh(ctx, subject)
			p.next(ctx)
			failed := fresh(ctx, subject)
			Expect(failed.Status).To(havePhase("Failed"))

			// The next pass would not see that the Machine has failed, and its Update would return
			// something new.
			revived := builder.In(namespace, builder.Machine())
			revived.Name, revived.UID = subject.Name, subject.UID
			Expect(actuator.Create(ctx, revived)).To(Succeed())
			actuator.Fail(fake.Update, errors.New("connection refused"))
			updates := len(actuator.Calls(fake.Update))
			_, result := p.next(ctx)
			Expect(fresh(ctx, subject)).To(Equal(failed))
			Expect(actuator.Calls(fake.Update)).To(HaveLen(updates))
			Expect(result.RequeueAfter).To(BeNumerically(">", 0))
		})

		It("does not keep a condition that its last write made wrong", func(ctx SpecContext) {
			frozenAfter(ctx, 4)
			cache.frozen = nil
			link(ctx, subject)
			p.next(ctx)
			before := fresh(ctx, subject)
			Expect(before.Status).To(haveCondition("InstanceExists", "True", "", BeEmpty()))
			actuator.Fail(fake.Exists, errors.New("connection refused"))
			_, _, err := p.try(ctx)
			Expect(err).To(MatchError(ContainSubstring("connection refused")))
			Expect(fresh(ctx, subject).Status).To(haveCondition("InstanceExists", "Unknown", "ErrorCheckingProvider", ContainSubstring("connection refused")))

			// An update of the condition triggers no reconcile, so this one must not end as if
			// there were nothing to write.
			cache.frozen = before
			wrote, result := p.next(ctx)
			Expect(wrote).To(BeEmpty())
			Expect(result.RequeueAfter).To(BeNumerically(">", 0))
			cache.frozen = nil
			p.next(ctx)
			Expect(fresh(ctx, subject).Status).To(haveCondition("InstanceExists", "True", "", BeEmpty()))
		})

		It("leaves nodeRef alone", func(ctx SpecContext) {
			frozenAfter(ctx, 3)
			node := link(ctx, subject)
			p.next(ctx)
			Expect(fresh(ctx, subject).Status.NodeRef.UID).To(Equal(node.UID))
			cache.frozen = nil
			p.next(ctx)
			Expect(fresh(ctx, subject).Status).To(havePhase("Running"))
		})

		It("does not lose that the Node was drained meanwhile", func(ctx SpecContext) {
			frozenAfter(ctx, 4)
			cache.frozen = nil
			Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
			p.next(ctx)
			edit(ctx, subject, func(m *machinev1beta1.Machine) { // so that the pass writes conditions
				m.Spec.LifecycleHooks.PreTerminate = []machinev1beta1.LifecycleHook{{Name: "SaveData", Owner: "backup"}}
			})
			cache.frozen = fresh(ctx, subject)
			drain(ctx, subject, corev1.ConditionTrue)
			wrote, result := p.next(ctx)
			Expect(wrote).To(Equal([]string{patchedStatus}))
			Expect(result.RequeueAfter).To(Equal(time.Second))
			Expect(fresh(ctx, subject).Status).To(haveCondition("Drained", "True", "", BeEmpty()))
			cache.frozen = nil
			p.next(ctx)
			Expect(fresh(ctx, subject).Status).To(And(haveCondition("Drained", "True", "", BeEmpty()),
				haveCondition("Terminable", "False", "HookPresent", ContainSubstring("SaveData"))))
		})

		It("does not lose it between its own two writes either", func(ctx SpecContext) {
			frozenAfter(ctx, 1)
			cache.frozen = nil
			p.client.beforeStatus = func() {
				p.client.beforeStatus = nil
				sayDrained(ctx, subject, corev1.ConditionTrue)
			}
			wrote, _ := p.next(ctx)
			Expect(wrote).To(Equal([]string{patchedMachine, patchedStatus}))
			Expect(fresh(ctx, subject).Status).To(haveCondition("Drained", "True", "", BeEmpty()))
		})

		It("undoes no finalizer of another, and tries again soon", func(ctx SpecContext) {
			cache = &staleClient{Client: plane.Client, frozen: fresh(ctx, subject)}
			p = byHand(subject, actuator, cache)
			edit(ctx, subject, func(m *machinev1beta1.Machine) { m.Finalizers = []string{"example.com/hold"} })
			wrote, result := p.next(ctx)
			Expect(wrote).To(Equal([]string{patchedMachine}))
			Expect(result.RequeueAfter).To(Equal(time.Second))
			Expect(fresh(ctx, subject).Finalizers).To(ConsistOf("example.com/hold"))
			cache.frozen = nil
			p.next(ctx)
			Expect(fresh(ctx, subject).Finalizers).To(ConsistOf("example.com/hold", machinev1beta1.MachineFinalizer))
		})

		It("lets go of a Machine that another still holds, at the second try", func(ctx SpecContext) {
			frozenAfter(ctx, 2)
			Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
			cache.frozen = nil
			p.next(ctx)
			drain(ctx, subject, corev1.ConditionTrue)
			cache.frozen = fresh(ctx, subject)
			touch(ctx, subject)
			_, result := p.next(ctx)
			Expect(result.RequeueAfter).To(Equal(time.Second))
			Expect(gone(ctx, subject)()).To(BeFalse())
			cache.frozen = nil
			p.next(ctx)
			Expect(gone(ctx, subject)()).To(BeTrue())
		})

		It("is content with a Machine that is gone", func(ctx SpecContext) {
			frozenAfter(ctx, 4)
			Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
			cache.frozen = nil
			p.next(ctx)
			drain(ctx, subject, corev1.ConditionTrue)
			cache.frozen = fresh(ctx, subject)
			p.next(ctx)
			Expect(gone(ctx, subject)()).To(BeTrue())
			_, result := p.next(ctx)
			Expect(result.RequeueAfter).To(BeZero())
		})

		It("writes nothing into a Machine made again under the name of the old one", func(ctx SpecContext) {
			frozenAfter(ctx, 3)
			old := subject
			Expect(plane.Client.Delete(ctx, old)).To(Succeed())
			edit(ctx, old, func(m *machinev1beta1.Machine) { m.Finalizers = nil })
			subject = builder.In(namespace, builder.Machine(func(m *machinev1beta1.Machine) { m.Name = old.Name }))
			create(ctx, subject)
			before := fresh(ctx, subject)
			p.next(ctx)
			Expect(fresh(ctx, subject)).To(Equal(before))
		})
	})

})

// checking is an actuator that can say whether anything has changed.
type checking struct {
	*fake.Actuator
	unchanged bool
	asked     int
}

// Unchanged implements actuators.UnchangedChecker.
func (c *checking) Unchanged(context.Context, *machinev1beta1.Machine) (time.Duration, bool) {
	c.asked++
	return time.Hour, c.unchanged
}
