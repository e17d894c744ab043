package machinedeployment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var (
	tagged = spec{Size: "small", Tag: "b"}
	bad    = spec{Size: "small", Tag: "bad"}
)

// moved reports whether a Machine changes in place.
func moved(m *machinev1beta1.Machine) bool { return m.Annotations[v1beta1.MovedFromAnnotation] != "" }

var _ = Describe("A MachineDeployment that changes Machines in place", func() {
	for _, kind := range []v1beta1.MachineDeploymentStrategyType{v1beta1.InPlace, v1beta1.InPlaceOrReplace} {
		It("keeps every instance where the plan allows it: "+string(kind), func(ctx SpecContext) {
			l := newLab(ctx, strategy(kind, 1, 0))
			former := l.uids(ctx)
			l.most, l.least = 3, 3
			l.change(ctx, template(tagged))
			l.settle(ctx)
			Expect(l.uids(ctx)).To(Equal(former))
			current := l.set(ctx, tagged)
			for _, m := range l.machines(ctx) {
				Expect(m.OwnerReferences).To(HaveLen(1))
				Expect(m.OwnerReferences[0].Name).To(Equal(current.Name))
				Expect(m.Labels).To(HaveKeyWithValue(v1beta1.TemplateHashLabel, current.Labels[v1beta1.TemplateHashLabel]))
			}
			Expect(*current.Spec.Replicas).To(BeEquivalentTo(3))
		})
	}

	It("replaces Machines after two plans were refused", func(ctx SpecContext) {
		l := newLab(ctx)
		former := l.uids(ctx)
		l.most, l.least = 4, 3
		l.change(ctx, template(large))
		sawWhy := false
		for range 16 {
			l.rounds(ctx, 1)
			inPlace := l.condition(ctx, v1beta1.ConditionInPlace)
			sawWhy = sawWhy || inPlace != nil && Expect(inPlace.Message).To(ContainSubstring("size can only be changed by a new instance"))
		}
		Expect(sawWhy).To(BeTrue())
		asked := map[string]bool{}
		for _, m := range l.machines(ctx) {
			if m.Annotations[v1beta1.MovedFromAnnotation] != "" {
				asked[m.Name] = true
			}
		}
		l.settle(ctx)
		Expect(l.uids(ctx)).NotTo(ContainElements(former))
		Expect(len(asked)).To(BeNumerically("<=", 1), "at a time")
	})

	It("replaces only the Machine that somebody has changed by hand", func(ctx SpecContext) {
		l := newLab(ctx)
		former := l.machines(ctx)
		slices.SortFunc(former, func(x, y machinev1beta1.Machine) int { return strings.Compare(x.Name, y.Name) })
		l.cloud.sizes[former[0].UID] = "resized"
		l.most, l.least = 4, 3
		l.change(ctx, template(tagged))
		l.settle(ctx)
		Expect(l.uids(ctx)).To(ContainElements(former[1].UID, former[2].UID))
		Expect(l.uids(ctx)).NotTo(ContainElement(former[0].UID))
	})

	It("never replaces with InPlace, and says which field would", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.InPlace, 1, 1))
		former := l.uids(ctx)
		l.change(ctx, template(large))
		l.rounds(ctx, 15)
		Expect(l.uids(ctx)).To(Equal(former))
		for _, m := range l.machines(ctx) {
			Expect(specOf(&m)).To(Equal(spec{Kind: "TestSpec", Size: "small", Tag: "a"}), "it was moved back")
			Expect(m.Annotations).NotTo(HaveKey(v1beta1.MovedFromAnnotation))
		}
		Expect(l.condition(ctx, v1beta1.ConditionInPlace).Message).To(ContainSubstring("3 Machines of " + l.set(ctx, small).Name))
		Expect(l.condition(ctx, v1beta1.ConditionStalled).Reason).To(Equal("ReplacementNeeded"))
		before := l.cloud.refusals
		l.rounds(ctx, 5)
		Expect(l.cloud.refusals).To(Equal(before), "nothing is tried again")

		By("allowing replacements")
		l.change(ctx, strategy(v1beta1.InPlaceOrReplace, 1, 0))
		l.settle(ctx)
	})

	It("replaces Machines that cannot go back because admission has become stricter", func(ctx SpecContext) {
		l := newLab(ctx)
		l.invalid = spec{Kind: "TestSpec", Size: "small", Tag: "a"}
		l.most, l.least = 4, 3
		l.change(ctx, template(large))
		l.settle(ctx)
	})

	It("replaces nothing because a policy of the cluster refuses writes", func(ctx SpecContext) {
		l := newLab(ctx)
		former := l.uids(ctx)
		l.refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "a", errors.New("updates are frozen"))
		l.change(ctx, template(tagged))
		l.rounds(ctx, 5)
		Expect(l.condition(ctx, v1beta1.ConditionReplicaFailure).Message).To(ContainSubstring("updates are frozen"))
		l.refusal = nil
		l.settle(ctx)
		Expect(l.uids(ctx)).To(Equal(former))
	})

	It("deletes no Machine that comes back after the strategy became OnDelete", func(ctx SpecContext) {
		l := newLab(ctx)
		former := l.uids(ctx)
		l.hold = moved
		l.change(ctx, template(large))
		l.rounds(ctx, 4)
		Expect(l.moving(ctx)).To(Equal(1))
		l.change(ctx, strategy(v1beta1.OnDelete, 1, 0))
		l.rounds(ctx, 2)
		l.hold = nil
		l.rounds(ctx, 8)
		Expect(l.uids(ctx)).To(Equal(former))
		Expect(l.moving(ctx)).To(BeZero())
	})

	It("goes on to a third revision although a Machine has failed on its way to the second", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.InPlace, 1, 0))
		l.hold = moved
		l.change(ctx, template(tagged))
		l.rounds(ctx, 4)
		Expect(l.moving(ctx)).To(Equal(1))
		for _, m := range l.machines(ctx) {
			if moved(&m) {
				before := m.DeepCopy()
				m.Status.ErrorMessage = ptr.To("its instance is gone")
				Expect(plane.Client.Status().Patch(ctx, &m, client.MergeFrom(before))).To(Succeed())
			}
		}
		l.change(ctx, template(spec{Size: "small", Tag: "c"}))
		l.rounds(ctx, 6)
		Expect(l.count(ctx, "c")).To(Equal(1))
	})

	for _, gone := range []bool{false, true} {
		It(fmt.Sprintf("loses no Machine if it is deleted with --cascade=orphan in the middle of a move (gone: %t)", gone), func(ctx SpecContext) {
			l := newLab(ctx)
			former := l.uids(ctx)
			l.change(ctx, template(tagged))
			l.writes = 3 // two holds and a move
			for l.moving(ctx) == 0 {
				l.roll(ctx)
			}
			Expect(plane.Client.Delete(ctx, l.deployment, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
			l.orphan(ctx)
			if gone {
				l.change(ctx, func(md *v1beta1.MachineDeployment) { md.Finalizers = nil })
			}
			l.follow(ctx)
			Expect(l.uids(ctx)).To(Equal(former), "before the manager is back")
			l.writes = 0
			l.rounds(ctx, 3)
			Expect(l.uids(ctx)).To(Equal(former))
			var numbers []int32
			for _, set := range l.sets(ctx) {
				Expect(set.Annotations).NotTo(HaveKey(v1beta1.HoldAnnotation))
				numbers = append(numbers, *set.Spec.Replicas)
			}
			Expect(numbers).To(ConsistOf(int32(1), int32(2)))
		})
	}

	It("loses no Machine of an orphan to a new MachineDeployment of its name with another selector", func(ctx SpecContext) {
		l := newLab(ctx)
		former := l.uids(ctx)
		l.change(ctx, template(tagged))
		l.writes = 3 // two holds and a move
		for l.moving(ctx) == 0 {
			l.roll(ctx)
		}
		Expect(plane.Client.Delete(ctx, l.deployment, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		l.orphan(ctx)
		l.change(ctx, func(md *v1beta1.MachineDeployment) { md.Finalizers = nil })
		again := labIn(l.namespace, replicas(0), func(md *v1beta1.MachineDeployment) {
			md.Spec.Selector.MatchLabels["pool"], md.Spec.Template.Labels["pool"] = "others", "others"
		})
		Expect(plane.Client.Create(ctx, again.deployment)).To(Succeed())
		again.cloud = l.cloud
		again.rounds(ctx, 3)
		Expect(again.uids(ctx)).To(Equal(former))
		for _, set := range again.sets(ctx) {
			Expect(set.Annotations).NotTo(HaveKey(v1beta1.HoldAnnotation))
		}
	})

	It("keeps the number of a copy of a MachineSet that it holds", func(ctx SpecContext) {
		l := newLab(ctx, replicas(0))
		set := builder.In(l.namespace, builder.MachineSet(builder.WithReplicas(2)))
		set.Annotations = map[string]string{v1beta1.HoldAnnotation: l.deployment.Name}
		Expect(plane.Client.Create(ctx, set)).To(Succeed())
		l.rounds(ctx, 2)
		Expect(l.machines(ctx)).To(HaveLen(2))
	})

	It("stops after a failed change", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.InPlaceOrReplace, 1, 0))
		former := l.uids(ctx)
		l.change(ctx, template(bad))
		l.rounds(ctx, 15)
		Expect(l.uids(ctx)).To(Equal(former))
		Expect(l.count(ctx, "bad")).To(Equal(1))
		Expect(l.condition(ctx, v1beta1.ConditionReplicaFailure).Message).To(ContainSubstring("the cloud does not like the tag"))
		l.change(ctx, template(tagged))
		l.settle(ctx)
		Expect(l.uids(ctx)).To(Equal(former))
	})

	It("changes no more at a time than maxUnavailable", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.InPlace, 1, 2), replicas(6))
		l.hold = moved
		l.change(ctx, template(tagged))
		l.rounds(ctx, 8)
		Expect(l.count(ctx, "b")).To(Equal(1), "the first one asks for all")
		l.hold = nil
		l.rounds(ctx, 2)
		l.hold = moved
		l.rounds(ctx, 8)
		Expect(l.moving(ctx)).To(BeNumerically("<=", 2))

		By("not waiting for a revision that is not wanted any more")
		l.change(ctx, template(spec{Size: "small", Tag: "c"}))
		l.rounds(ctx, 8)
		Expect(l.count(ctx, "c")).To(BeNumerically(">=", 1))
		Expect(l.moving(ctx)).To(BeNumerically("<=", 2))
		l.hold = nil
		l.settle(ctx)
	})

	for _, next := range []spec{tagged, large} {
		for writes := 1; writes <= 5; writes++ {
			It(fmt.Sprintf("survives restarts after %d writes on the way to %+v", writes, next), func(ctx SpecContext) {
				l := newLab(ctx)
				former := l.uids(ctx)
				l.most, l.least, l.writes = 4, 3, writes
				l.change(ctx, template(next))
				if writes < 3 { // a move takes three writes: with fewer, nothing moves until the manager lives longer
					l.rounds(ctx, 10)
					l.writes = 0
				}
				l.settle(ctx)
				if next == tagged {
					Expect(l.uids(ctx)).To(Equal(former))
				}
			})
		}
	}
})

func (l *lab) count(ctx SpecContext, tag string) (count int) {
	GinkgoHelper()
	for _, m := range l.machines(ctx) {
		if specOf(&m).Tag == tag {
			count++
		}
	}
	return count
}

// orphan does what the garbage collector does.
func (l *lab) orphan(ctx context.Context) {
	GinkgoHelper()
	for _, owned := range l.sets(ctx) {
		before := owned.DeepCopy()
		owned.OwnerReferences = nil
		Expect(plane.Client.Patch(ctx, &owned, client.MergeFrom(before))).To(Succeed())
	}
}

func (l *lab) moving(ctx context.Context) (count int) {
	GinkgoHelper()
	for _, m := range l.machines(ctx) {
		if m.Annotations[v1beta1.MovedFromAnnotation] != "" {
			count++
		}
	}
	return count
}
