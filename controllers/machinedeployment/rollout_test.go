package machinedeployment_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var (
	small = spec{Size: "small", Tag: "a"}
	large = spec{Size: "large", Tag: "a"}
	huge  = spec{Size: "huge", Tag: "a"}
	never = spec{Size: "large", Tag: "a", Never: true}
)

var _ = Describe("A MachineDeployment that replaces", func() {
	It("has Machines, a status and conditions", func(ctx SpecContext) {
		l := newLab(ctx)
		status := l.read(ctx).Status
		Expect([]int32{status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, status.AvailableReplicas, status.UnavailableReplicas}).
			To(Equal([]int32{3, 3, 3, 3, 0}))
		Expect(status.Selector).To(Equal("pool=workers"))
		Expect(l.read(ctx).Annotations).To(HaveKeyWithValue(v1beta1.RevisionAnnotation, "1"))
		Expect(meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionAvailable)).To(BeTrue())
		for _, absent := range []string{v1beta1.ConditionReconciling, v1beta1.ConditionStalled, v1beta1.ConditionPaused, v1beta1.ConditionReplicaFailure} {
			Expect(l.condition(ctx, absent)).To(BeNil(), absent)
		}
		before := l.read(ctx).ResourceVersion
		l.rounds(ctx, 3)
		Expect(l.read(ctx).ResourceVersion).To(Equal(before), "a reconcile at rest writes nothing")
		l.change(ctx, replicas(5))
		l.settle(ctx)
		l.change(ctx, replicas(0))
		l.settle(ctx)
		Expect(l.sets(ctx)).To(HaveLen(1))
	})

	for _, bounds := range [][2]int{{1, 0}, {0, 1}, {2, 1}} {
		It(fmt.Sprintf("keeps to maxSurge %d and maxUnavailable %d", bounds[0], bounds[1]), func(ctx SpecContext) {
			l := newLab(ctx, strategy(v1beta1.RollingUpdate, bounds[0], bounds[1]))
			former := l.uids(ctx)
			l.most, l.least = 3+bounds[0], 3-bounds[1]
			l.change(ctx, template(large))
			l.settle(ctx)
			Expect(l.uids(ctx)).NotTo(ContainElements(former))
			Expect(*l.set(ctx, small).Spec.Replicas).To(BeZero())
		})
	}

	It("goes on to a third revision, and back, in mid-rollout", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.RollingUpdate, 1, 0))
		l.most, l.least = 4, 3
		for _, next := range []spec{large, huge, small, large} {
			l.change(ctx, template(next))
			l.rounds(ctx, 4)
		}
		l.settle(ctx)
		Expect(l.sets(ctx)).To(HaveLen(3), "an undone revision is used again")
		Expect(l.set(ctx, large).Annotations).To(HaveKeyWithValue(v1beta1.RevisionAnnotation, "5"))
	})

	It("stops a revision that does not come up, names a Machine, and goes back", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.RollingUpdate, 1, 0), func(md *v1beta1.MachineDeployment) {
			md.Spec.ProgressDeadlineSeconds = ptr.To[int32](600)
		})
		former := l.uids(ctx)
		l.change(ctx, template(never))
		l.rounds(ctx, 10)
		Expect(l.machines(ctx)).To(HaveLen(4))
		Expect(l.uids(ctx)).To(ContainElements(former))
		Expect(l.condition(ctx, v1beta1.ConditionReconciling)).NotTo(BeNil())
		l.age(ctx, 11*time.Minute)
		failing := l.failOne(ctx, "no quota left")
		l.rounds(ctx, 1)
		progressing := l.condition(ctx, v1beta1.ConditionProgressing)
		Expect(progressing.Reason).To(Equal(v1beta1.ReasonProgressDeadlineExceeded))
		Expect(progressing.Message).To(ContainSubstring("Machine " + failing + ": no quota left"))
		Expect(l.condition(ctx, v1beta1.ConditionStalled)).NotTo(BeNil())
		l.change(ctx, template(small))
		l.settle(ctx)
		Expect(l.uids(ctx)).To(Equal(former))
	})

	It("does nothing about revisions while it is paused, but scales", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.RollingUpdate, 1, 0))
		l.change(ctx, template(large), func(md *v1beta1.MachineDeployment) { md.Spec.Paused = true })
		l.rounds(ctx, 5)
		Expect(l.sets(ctx)).To(HaveLen(1))
		l.change(ctx, replicas(4))
		l.rounds(ctx, 5)
		Expect(l.machines(ctx)).To(HaveLen(4))
		Expect(*l.set(ctx, small).Spec.Replicas).To(BeEquivalentTo(4))
		Expect(l.condition(ctx, v1beta1.ConditionPaused)).NotTo(BeNil())
		l.change(ctx, func(md *v1beta1.MachineDeployment) { md.Spec.Paused = false })
		l.settle(ctx)
	})

	It("deletes all first with Recreate", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.Recreate, 0, 1))
		l.most = 3
		l.change(ctx, template(large))
		l.settle(ctx)
	})

	It("waits for deletions with OnDelete", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.OnDelete, 0, 1))
		l.change(ctx, template(large))
		l.rounds(ctx, 5)
		Expect(*l.set(ctx, small).Spec.Replicas).To(BeEquivalentTo(3))
		l.most = 3
		for left := range 3 {
			for _, m := range l.machines(ctx) {
				if specOf(&m).Size == "small" {
					Expect(plane.Client.Delete(ctx, &m)).To(Succeed())
					break
				}
			}
			l.rounds(ctx, 8)
			Expect(*l.set(ctx, large).Spec.Replicas).To(BeEquivalentTo(left + 1))
		}
		l.settle(ctx)
	})

	It("deletes the choice of an autoscaler in mid-rollout", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.RollingUpdate, 1, 0))
		l.change(ctx, template(large))
		var choice *machinev1beta1.Machine
		for choice == nil {
			l.rounds(ctx, 1)
			for _, m := range l.machines(ctx) {
				if specOf(&m).Size == "large" && m.Status.NodeRef != nil {
					choice = &m
				}
			}
		}
		before := choice.DeepCopy()
		choice.Annotations["machine.openshift.io/delete-machine"] = "autoscaler"
		Expect(plane.Client.Patch(ctx, choice, client.MergeFrom(before))).To(Succeed())
		l.change(ctx, replicas(2))
		l.settle(ctx)
		Expect(l.uids(ctx)).NotTo(ContainElement(choice.UID))
	})

	It("deletes old Machines first if it shrinks in mid-rollout", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.RollingUpdate, 1, 0), replicas(4))
		former := l.uids(ctx)
		l.change(ctx, template(large))
		var updated []types.UID
		for len(updated) == 0 {
			l.rounds(ctx, 1)
			for _, m := range l.machines(ctx) {
				if !slices.Contains(former, m.UID) {
					updated = append(updated, m.UID)
				}
			}
		}
		l.change(ctx, replicas(2))
		l.settle(ctx)
		Expect(l.uids(ctx)).To(ContainElements(updated))
	})

	It("shows an autoscaler the size of the current MachineSet, and what somebody has written", func(ctx SpecContext) {
		const cpu, memory = "machine.openshift.io/vCPU", "machine.openshift.io/memoryMb"
		l := newLab(ctx)
		sized := func(object client.Object, annotations map[string]string) {
			before := object.DeepCopyObject().(client.Object)
			of := maps.Clone(object.GetAnnotations())
			maps.Copy(of, annotations)
			object.SetAnnotations(of)
			Expect(plane.Client.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
		}
		sized(l.read(ctx), map[string]string{memory: "1"})
		sized(l.set(ctx, spec{Size: "small", Tag: "a"}), map[string]string{cpu: "4", memory: "2"})
		l.rounds(ctx, 1)
		Expect(l.read(ctx).Annotations).To(And(HaveKeyWithValue(cpu, "4"), HaveKeyWithValue(memory, "1")))
		l.change(ctx, template(spec{Size: "large", Tag: "a"}))
		l.rounds(ctx, 1)
		sized(l.set(ctx, spec{Size: "large", Tag: "a"}), map[string]string{cpu: "8"})
		l.settle(ctx)
		Expect(l.read(ctx).Annotations).To(And(HaveKeyWithValue(cpu, "8"), HaveKeyWithValue(memory, "1")))
	})

	It("keeps as many old MachineSets as the history may have", func(ctx SpecContext) {
		l := newLab(ctx, strategy(v1beta1.RollingUpdate, 3, 3), func(md *v1beta1.MachineDeployment) {
			md.Spec.RevisionHistoryLimit = ptr.To[int32](1)
		})
		for _, next := range []spec{large, huge} {
			l.change(ctx, template(next))
			l.settle(ctx)
		}
		l.rounds(ctx, 3)
		Expect(l.sets(ctx)).To(HaveLen(2))
		Expect(l.set(ctx, small)).To(BeNil())
	})

	It("replaces all Machines after a restart was requested", func(ctx SpecContext) {
		l := newLab(ctx)
		former := l.uids(ctx)
		l.change(ctx, func(md *v1beta1.MachineDeployment) {
			md.Spec.RestartedAt = ptr.To(metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		})
		l.settle(ctx)
		Expect(l.uids(ctx)).NotTo(ContainElements(former))
		Expect(l.sets(ctx)).To(HaveLen(2))
	})

	It("uses another name if one is taken", func(ctx SpecContext) {
		l := newLab(ctx, replicas(1))
		name := l.sets(ctx)[0].Name
		other := labIn(suite.Namespace(ctx, plane), replicas(1))
		taken := builder.In(other.namespace, builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.Name = name; s.Spec.Replicas = ptr.To[int32](0) }))
		Expect(plane.Client.Create(ctx, taken)).To(Succeed())
		Expect(plane.Client.Create(ctx, other.deployment)).To(Succeed())
		other.settle(ctx)
		Expect(*other.read(ctx).Status.CollisionCount).To(BeEquivalentTo(1))
	})

	It("brings labels, annotations, taints and hooks to existing Machines", func(ctx SpecContext) {
		l := newLab(ctx, func(md *v1beta1.MachineDeployment) {
			md.Spec.Template.Labels["old"] = "x"
			md.Spec.Template.Spec.Labels = map[string]string{"node": "x"}
		})
		former := l.uids(ctx)
		theirs := l.machines(ctx)[0]
		before := theirs.DeepCopy()
		theirs.Labels["theirs"] = "y"
		Expect(plane.Client.Patch(ctx, &theirs, client.MergeFrom(before))).To(Succeed())
		l.change(ctx, func(md *v1beta1.MachineDeployment) {
			delete(md.Spec.Template.Labels, "old")
			md.Spec.Template.Labels["new"] = "x"
			md.Spec.Template.Spec.Labels = map[string]string{"node": "z"}
			md.Spec.Template.Spec.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
			md.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
			md.Spec.Template.Spec.LifecycleHooks.PreDrain = []machinev1beta1.LifecycleHook{{Name: "a.b/c", Owner: "owner"}}
		})
		l.rounds(ctx, 5)
		Expect(l.uids(ctx)).To(Equal(former))
		for _, m := range l.machines(ctx) {
			Expect(m.Labels).To(HaveKeyWithValue("new", "x"))
			Expect(m.Labels).NotTo(HaveKey("old"))
			Expect(m.Spec.Labels).To(Equal(map[string]string{"node": "z"}))
			Expect(m.Spec.Annotations).To(HaveLen(1))
			Expect(m.Spec.Taints).To(HaveLen(1))
			Expect(m.Spec.LifecycleHooks.PreDrain).To(HaveLen(1))
			Expect(m.Labels["theirs"] != "").To(Equal(m.UID == theirs.UID))
		}
		Expect(l.sets(ctx)).To(HaveLen(1))
	})

	It("adopts a MachineSet without touching its instances, and leaves it as an orphan", func(ctx SpecContext) {
		l := labIn(suite.Namespace(ctx, plane))
		set := builder.In(l.namespace, builder.MachineSet(builder.WithReplicas(3), func(s *machinev1beta1.MachineSet) {
			s.Spec.Template = *l.deployment.Spec.Template.DeepCopy()
			s.Spec.Template.Labels["set"] = "workers"
			s.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"set": "workers"}}
		}))
		foreign := builder.In(l.namespace, builder.MachineSet(builder.WithReplicas(0), func(s *machinev1beta1.MachineSet) {
			s.Spec.Template.Labels["pool"] = "workers"
		}))
		Expect(plane.Client.Create(ctx, set)).To(Succeed())
		Expect(plane.Client.Create(ctx, foreign)).To(Succeed())
		for range 4 {
			l.follow(ctx)
		}
		former, instances := l.uids(ctx), len(l.cloud.Calls("Create"))
		Expect(former).To(HaveLen(3))
		generations := map[string]int64{}
		for _, m := range l.machines(ctx) {
			generations[m.Name] = m.Generation
		}
		l.deployment.Spec.Replicas = nil
		Expect(plane.Client.Create(ctx, l.deployment)).To(Succeed())
		l.rounds(ctx, 10)
		Expect(l.uids(ctx)).To(Equal(former))
		Expect(l.cloud.Calls("Create")).To(HaveLen(instances))
		Expect(l.sets(ctx)).To(HaveLen(2))
		for _, m := range l.machines(ctx) {
			Expect(m.Generation).To(Equal(generations[m.Name]), "only labels change")
			Expect(m.Labels).To(HaveKey(v1beta1.TemplateHashLabel))
		}
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.OwnerReferences).To(BeEmpty(), "it has another template")

		By("rolling out a change, in place")
		l.change(ctx, template(spec{Size: "small", Tag: "b"}))
		l.settle(ctx)
		Expect(l.uids(ctx)).To(Equal(former))
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		Expect(*set.Spec.Replicas).To(BeZero())

		By("orphaning, as the garbage collector does it")
		Expect(plane.Client.Delete(ctx, l.deployment)).To(Succeed())
		l.orphan(ctx)
		for range 3 {
			l.follow(ctx)
		}
		Expect(l.uids(ctx)).To(Equal(former))

		By("taking them again")
		again := labIn(l.namespace, template(spec{Size: "small", Tag: "b"}))
		again.cloud = l.cloud
		Expect(plane.Client.Create(ctx, again.deployment)).To(Succeed())
		again.settle(ctx)
		Expect(again.uids(ctx)).To(Equal(former))
	})

	DescribeTable("reports a spec that cannot be followed", func(ctx SpecContext, edit change, says string) {
		l := labIn(suite.Namespace(ctx, plane), edit)
		Expect(plane.Client.Create(ctx, l.deployment)).To(Succeed())
		l.rounds(ctx, 2)
		Expect(l.condition(ctx, v1beta1.ConditionStalled).Message).To(ContainSubstring(says))
		Expect(l.sets(ctx)).To(BeEmpty())
	},
		Entry("another label", func(md *v1beta1.MachineDeployment) { md.Spec.Template.Labels = nil }, "does not match"),
		Entry("no selector", func(md *v1beta1.MachineDeployment) { md.Spec.Selector = metav1.LabelSelector{} }, "is empty"),
		Entry("the control plane", func(md *v1beta1.MachineDeployment) {
			md.Spec.Template.Labels[builder.RoleLabel] = "master"
		}, "control plane"),
	)

	It("has a selector that cannot be changed", func(ctx SpecContext) {
		l := newLab(ctx, replicas(0))
		md := l.read(ctx)
		md.Spec.Selector.MatchLabels["more"] = "x"
		Expect(plane.Client.Update(ctx, md)).To(MatchError(ContainSubstring("selector is immutable")))
	})
})

// age makes the last progress older.
func (l *lab) age(ctx SpecContext, by time.Duration) {
	GinkgoHelper()
	md := l.read(ctx)
	meta.FindStatusCondition(md.Status.Conditions, v1beta1.ConditionProgressing).LastTransitionTime = past(by)
	Expect(plane.Client.Status().Update(ctx, md)).To(Succeed())
}

// failOne gives a Machine that does not come up an error, and returns its name.
func (l *lab) failOne(ctx SpecContext, why string) string {
	GinkgoHelper()
	for _, m := range l.machines(ctx) {
		if specOf(&m).Never {
			l.hold = func(held *machinev1beta1.Machine) bool { return held.Name == m.Name && held.DeletionTimestamp.IsZero() }
			before := m.DeepCopy()
			m.Status.ErrorMessage = &why
			Expect(plane.Client.Status().Patch(ctx, &m, client.MergeFrom(before))).To(Succeed())
			return m.Name
		}
	}
	Fail("no Machine fails to come up")
	return ""
}
