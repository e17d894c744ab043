package machinehealthcheck_test

import (
	"context"
	"errors"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/controllers/machinehealthcheck"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// messageOfEvent returns the note of an event with a reason, empty when there is none.
func messageOfEvent(ctx context.Context, namespace, reason string) string {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(plane.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	for _, event := range list.Items {
		if event.Reason == reason {
			return event.Note
		}
	}
	return ""
}

var _ = Describe("Passes, one after the other", func() {
	const (
		yes, no = corev1.ConditionTrue, corev1.ConditionFalse
		allowed = machinev1beta1.RemediationAllowedCondition
	)
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = suite.Namespace(ctx, plane) })

	newCheck := func(ctx context.Context, mods ...checkMod) *machinev1beta1.MachineHealthCheck {
		GinkgoHelper()
		check := builder.In(namespace, builder.MachineHealthCheck(mods...))
		create(ctx, check)
		return check
	}

	It("report that remediation is restricted when that begins, when its numbers change, and after a restart", func(ctx SpecContext) {
		first := onNode(namespace, no, ago(time.Hour)).create(ctx)
		second := onNode(namespace, yes, ago(time.Hour)).create(ctx)
		check := newCheck(ctx, builder.WithMaxUnhealthy("0"))
		p := byHand(check, now)
		restricted := ConsistOf("Warning RemediationRestricted")
		Expect(p.next(ctx).events).To(restricted)
		got := p.next(ctx)
		Expect(got.events).To(BeEmpty())
		Expect(got.writes).To(BeEmpty())
		Expect(got.after).To(BeZero())
		second.turn(ctx, no, ago(time.Hour))
		Expect(p.next(ctx).events).To(restricted)
		Expect(p.next(ctx).events).To(BeEmpty())
		Expect(byHand(check, now).next(ctx).events).To(restricted)
		first.turn(ctx, yes, ago(time.Minute))
		second.turn(ctx, yes, ago(time.Minute))
		Expect(p.next(ctx).events).To(BeEmpty())
		first.turn(ctx, no, ago(time.Hour))
		Expect(p.next(ctx).events).To(restricted)
	})

	It("report a Machine that is due later once, until it has been well", func(ctx SpecContext) {
		subject := onNode(namespace, no, ago(time.Minute)).create(ctx)
		p := byHand(newCheck(ctx), now)
		Expect(p.next(ctx).events).To(ConsistOf("Normal DetectedUnhealthy"))
		p.clock.SetTime(now.Add(time.Minute))
		got := p.next(ctx)
		Expect(got.events).To(BeEmpty())
		Expect(got.after).To(Equal(3*time.Minute + time.Second))
		subject.turn(ctx, yes, now)
		Expect(p.next(ctx).events).To(BeEmpty())
		subject.turn(ctx, no, now)
		Expect(p.next(ctx).events).To(ConsistOf("Normal DetectedUnhealthy"))
	})

	It("wake for the Machine that is due first, also while restricted", func(ctx SpecContext) {
		onNode(namespace, no, ago(time.Minute)).create(ctx)
		onNode(namespace, no, ago(3*time.Minute)).create(ctx)
		withoutNode(namespace, builder.LastUpdatedAt(ago(time.Minute))).create(ctx)
		Expect(byHand(newCheck(ctx, builder.WithMaxUnhealthy("0")), now).next(ctx).after).To(Equal(2*time.Minute + time.Second))
	})

	It("leave starting Machines out of maxUnhealthy where an annotation says so", func(ctx SpecContext) {
		unhealthy := onNode(namespace, no, ago(time.Hour)).create(ctx)
		starting := withoutNode(namespace, builder.LastUpdatedAt(ago(time.Minute))).create(ctx)
		plain := newCheck(ctx, builder.WithMaxUnhealthy("1"))
		Expect(byHand(plain, now).next(ctx).err).NotTo(HaveOccurred())
		Expect(living(ctx, unhealthy, starting)()).To(HaveLen(2))
		Expect(conditionOf(ctx, plain, allowed)()).To(Equal("False TooManyUnhealthy"))

		exempting := newCheck(ctx, builder.WithMaxUnhealthy("1"),
			builder.WithCheckAnnotations(map[string]string{"machine-iac.io/exempt-starting-machines": "true"}))
		Expect(byHand(exempting, now).next(ctx).err).NotTo(HaveOccurred())
		Expect(living(ctx, unhealthy, starting)()).To(ConsistOf(starting.machine.Name))
		status := statusOf(ctx, exempting)
		Expect(status.ExpectedMachines).To(HaveValue(Equal(2)))
		Expect(status.CurrentHealthy).To(HaveValue(Equal(0)))
		Expect(conditionOf(ctx, exempting, allowed)()).To(Equal("True"))
	})

	It("report annotations that cannot be read, and assume the safe value", func(ctx SpecContext) {
		members := []member{
			onNode(namespace, no, ago(2*time.Hour)).create(ctx), onNode(namespace, no, ago(time.Hour)).create(ctx),
		}
		check := newCheck(ctx, builder.WithCheckAnnotations(map[string]string{
			"machine-iac.io/max-remediations-in-flight": "some", "machine-iac.io/exempt-starting-machines": "yes",
		}))
		p := byHand(check, now)
		got := p.next(ctx)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.events).To(ConsistOf("Warning InvalidAnnotation", "Warning InvalidAnnotation",
			"Normal RemediationDeferred", "Normal MachineDeleted"))
		Expect(got.notes).To(ContainElements(
			HavePrefix(`The annotation machine-iac.io/max-remediations-in-flight has the value "some": until it is fixed, one remediation at a time is allowed`),
			HavePrefix(`The annotation machine-iac.io/exempt-starting-machines has the value "yes": until it is fixed, starting Machines count against maxUnhealthy`),
		))
		Expect(living(ctx, members...)()).To(ConsistOf(members[1].machine.Name))
	})

	It("show a selector that cannot be read", func(ctx SpecContext) {
		subject := withoutNode(namespace, builder.WithPhase("Failed")).create(ctx)
		check := newCheck(ctx, func(c *machinev1beta1.MachineHealthCheck) {
			c.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}}
		})
		p := byHand(check, now)
		got := p.next(ctx)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.events).To(ConsistOf("Warning RemediationRestricted"))
		Expect(got.notes).To(ConsistOf(ContainSubstring("spec.selector cannot be read")))
		Expect(conditionOf(ctx, check, allowed)()).To(Equal("False InvalidSelector"))
		Expect(living(ctx, subject)()).To(HaveLen(1))
		again := p.next(ctx)
		Expect(again.events).To(BeEmpty())
		Expect(again.writes).To(BeEmpty())
	})

	It("do nothing twice while the cache is behind", func(ctx SpecContext) {
		unhealthy := onNode(namespace, no, ago(2*time.Hour), builder.WithFinalizer()).create(ctx)
		next := onNode(namespace, no, ago(time.Hour), builder.WithFinalizer()).create(ctx)
		frozen := &machinev1beta1.MachineList{}
		Expect(plane.Client.List(ctx, frozen, client.InNamespace(namespace))).To(Succeed())
		check := newCheck(ctx, builder.WithCheckAnnotations(map[string]string{"machine-iac.io/max-remediations-in-flight": "1"}))
		p := byHand(check, now, func(options *machinehealthcheck.Options) {
			options.Client = interceptor.NewClient(options.Client.(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, mods ...client.ListOption) error {
					if machines, ok := list.(*machinev1beta1.MachineList); ok {
						frozen.DeepCopyInto(machines)
						return nil
					}
					return c.List(ctx, list, mods...)
				},
			})
		})
		Expect(p.next(ctx).events).To(ConsistOf("Normal MachineDeleted", "Normal RemediationDeferred"))
		got := p.next(ctx)
		Expect(got.writes).To(BeEmpty())
		Expect(got.events).To(BeEmpty())
		Expect(living(ctx, unhealthy, next)()).To(ConsistOf(next.machine.Name))
		Expect(seriesOf(p.metrics)).To(ContainElement(1.0))
	})

	It("delete the Machine that was checked, not one of its name", func(ctx SpecContext) {
		subject := withoutNode(namespace, builder.WithPhase("Failed")).create(ctx)
		frozen := subject.machine.DeepCopy()
		frozen.UID = "00000000-0000-0000-0000-00000000dead"
		p := byHand(newCheck(ctx), now, func(options *machinehealthcheck.Options) {
			options.Client = interceptor.NewClient(watching, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, mods ...client.ListOption) error {
					if machines, ok := list.(*machinev1beta1.MachineList); ok {
						machines.Items = []machinev1beta1.Machine{*frozen}
						return nil
					}
					return c.List(ctx, list, mods...)
				},
			})
			options.Reader = options.Client // another has taken its name since it was read
		})
		got := p.next(ctx)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.events).To(BeEmpty())
		Expect(living(ctx, subject)()).To(HaveLen(1))
	})

	It("do not take it from the cache alone that a Node is gone", func(ctx SpecContext) {
		subject := onNode(namespace, corev1.ConditionTrue, now.Add(-time.Hour)).create(ctx)
		check := newCheck(ctx)
		p := byHand(check, now, func(options *machinehealthcheck.Options) {
			options.Client = interceptor.NewClient(watching, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, mods ...client.GetOption) error {
					if _, ok := object.(*corev1.Node); ok {
						return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
					}
					return c.Get(ctx, key, object, mods...)
				},
			})
		})
		got := p.next(ctx)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.events).To(BeEmpty())
		Expect(living(ctx, subject)()).To(HaveLen(1))
	})

	It("report a deletion that is refused, delete the others, and try again", func(ctx SpecContext) {
		stubborn := withoutNode(namespace, builder.WithPhase("Failed")).create(ctx)
		other := withoutNode(namespace, builder.WithPhase("Failed")).create(ctx)
		check := newCheck(ctx)
		p := byHand(check, now, func(options *machinehealthcheck.Options) {
			options.Client = interceptor.NewClient(watching, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, mods ...client.DeleteOption) error {
					if object.GetName() == stubborn.machine.Name {
						return errors.New("a webhook says no")
					}
					return c.Delete(ctx, object, mods...)
				},
			})
		})
		got := p.next(ctx)
		Expect(got.err).To(MatchError(ContainSubstring("a webhook says no")))
		Expect(got.events).To(ConsistOf("Warning MachineDeletionFailed", "Normal MachineDeleted"))
		Expect(living(ctx, stubborn, other)()).To(ConsistOf(stubborn.machine.Name))
		Expect(statusOf(ctx, check).ExpectedMachines).To(HaveValue(Equal(2)))
	})

	It("have a pause after them where they read many Machines, unless they failed", func(ctx SpecContext) {
		onNode(namespace, corev1.ConditionTrue, ago(time.Hour)).create(ctx)
		refusal := errors.New("a webhook says no")
		p := byHand(newCheck(ctx), now, func(options *machinehealthcheck.Options) {
			options.Client = interceptor.NewClient(watching, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, mods ...client.ListOption) error {
					err := c.List(ctx, list, mods...)
					if machines, ok := list.(*machinev1beta1.MachineList); ok && err == nil {
						machines.Items = slices.Repeat(machines.Items, 300)
					}
					return err
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, mods ...client.SubResourcePatchOption) error {
					if refusal != nil {
						return refusal
					}
					return c.SubResource(sub).Patch(ctx, object, patch, mods...)
				},
			})
		})
		Expect(p.next(ctx).err).To(MatchError(refusal))
		Expect(p.next(ctx).err).To(MatchError(refusal), "a pause would reset the backoff of the queue")
		refusal = nil
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		Expect(p.next(ctx).after).To(Equal(30 * time.Millisecond))
	})

	It("report an annotation that is refused", func(ctx SpecContext) {
		onNode(namespace, no, ago(time.Hour)).create(ctx)
		p := byHand(newCheck(ctx, baremetal), now, func(options *machinehealthcheck.Options) {
			options.Client = interceptor.NewClient(watching, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return errors.New("a webhook says no")
				},
			})
		})
		got := p.next(ctx)
		Expect(got.err).To(MatchError(ContainSubstring("a webhook says no")))
		Expect(got.events).To(ConsistOf("Warning ExternalAnnotationFailed"))
	})

	It("try again soon when another has written the status", func(ctx SpecContext) {
		check := newCheck(ctx)
		stale := check.DeepCopy()
		create(ctx, withoutNode(namespace).machine)
		p := byHand(check, now)
		Expect(p.next(ctx).err).NotTo(HaveOccurred())
		behind := byHand(check, now, func(options *machinehealthcheck.Options) {
			options.Client = interceptor.NewClient(watching, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, mods ...client.GetOption) error {
					into, ok := object.(*unstructured.Unstructured)
					if !ok {
						return c.Get(ctx, key, object, mods...)
					}
					content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stale)
					into.Object = content
					return err
				},
			})
		})
		got := behind.next(ctx)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.after).To(Equal(time.Second))
	})

	It("end for a MachineHealthCheck that is being deleted", func(ctx SpecContext) {
		subject := withoutNode(namespace, builder.WithPhase("Failed")).create(ctx)
		check := newCheck(ctx, func(c *machinev1beta1.MachineHealthCheck) { c.Finalizers = []string{"example.com/keep"} })
		Expect(plane.Client.Delete(ctx, check)).To(Succeed())
		p := byHand(check, now)
		got := p.next(ctx)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.writes).To(BeEmpty())
		Expect(living(ctx, subject)()).To(HaveLen(1))
		Expect(seriesOf(p.metrics)).To(BeEmpty())
	})
})
