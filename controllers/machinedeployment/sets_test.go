package machinedeployment_test

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/machinedeployment"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// setLab is a lab without a MachineDeployment.
type setLab struct {
	*lab

	key client.ObjectKey
	// replicas is what spec.replicas stays at.
	replicas int32
}

// newSetLab creates a MachineSet of three Machines, and runs it until they are available.
func newSetLab(ctx context.Context) *setLab {
	GinkgoHelper()
	l := labIn(suite.Namespace(ctx, plane))
	from := l.deployment.Spec
	set := builder.In(l.namespace, builder.MachineSet(builder.WithReplicas(3), func(s *machinev1beta1.MachineSet) {
		s.Name, s.Spec.Selector, s.Spec.Template = "hollow", from.Selector, from.Template
	}))
	Expect(plane.Client.Create(ctx, set)).To(Succeed())
	s := &setLab{l, client.ObjectKeyFromObject(set), 3}
	s.rounds(ctx, 4)
	Expect(l.machines(ctx)).To(HaveLen(3))
	return s
}

func (l *setLab) current(ctx context.Context) *machinev1beta1.MachineSet {
	GinkgoHelper()
	set := &machinev1beta1.MachineSet{}
	Expect(plane.Client.Get(ctx, l.key, set)).To(Succeed())
	return set
}

// ask edits the MachineSet: its template, unless that is nil, and its annotations.
func (l *setLab) ask(ctx context.Context, to *spec, annotations map[string]string) {
	GinkgoHelper()
	Eventually(func() error {
		set := l.current(ctx)
		if to != nil {
			content := *to
			content.Kind = "TestSpec"
			raw, err := json.Marshal(content)
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Template.Spec.ProviderSpec.Value.Raw = raw
		}
		set.Annotations = annotations
		return plane.Client.Update(ctx, set)
	}).Should(Succeed())
}

func by(strategy v1beta1.MachineDeploymentStrategyType) map[string]string {
	return map[string]string{v1beta1.RolloutAnnotation: string(strategy)}
}

// rounds runs everything a number of times.
func (l *setLab) rounds(ctx context.Context, count int) {
	GinkgoHelper()
	left := l.writes
	if left == 0 {
		left = -1
	}
	for range count {
		api := &crashing{Client: completing{plane.Client, l.zone}, left: left, invalid: l.invalid}
		controller := machinedeployment.NewSets(machinedeployment.Options{Common: common(api)})
		result, err := controller.Reconcile(ctx, reconcile.Request{NamespacedName: l.key})
		tolerated(err)
		rolledOut := machineapi.FindCondition(l.current(ctx).Status.Conditions, v1beta1.ConditionRolledOut)
		if err == nil && rolledOut != nil && rolledOut.Reason == v1beta1.ReasonRolloutInProgress {
			Expect(result.RequeueAfter).NotTo(BeZero(), "a rollout in progress is looked at again")
		}
		l.check(ctx)
		l.follow(ctx)
		Expect(*l.current(ctx).Spec.Replicas).To(BeEquivalentTo(l.replicas))
	}
}

// edit changes a Machine by hand.
func (l *setLab) edit(ctx context.Context, m *machinev1beta1.Machine, change func(*machinev1beta1.Machine)) {
	GinkgoHelper()
	before := m.DeepCopy()
	change(m)
	Expect(plane.Client.Patch(ctx, m, client.MergeFrom(before))).To(Succeed())
}

func (l *setLab) result(ctx context.Context) string {
	GinkgoHelper()
	condition := machineapi.FindCondition(l.current(ctx).Status.Conditions, v1beta1.ConditionRolledOut)
	if condition == nil {
		return ""
	}
	return string(condition.Status) + " " + condition.Message
}

// settle runs everything until no rollout is asked for.
func (l *setLab) settle(ctx context.Context) {
	GinkgoHelper()
	for range 120 {
		l.rounds(ctx, 1)
		if l.current(ctx).Annotations[v1beta1.RolloutAnnotation] == "" {
			Expect(l.current(ctx).Annotations).To(BeEmpty())
			for _, m := range l.machines(ctx) {
				Expect(m.Annotations).NotTo(HaveKey(v1beta1.FormerSpecAnnotation))
				Expect(m.Annotations).NotTo(HaveKey(v1beta1.MovedFromAnnotation))
			}
			return
		}
	}
	Fail("the rollout does not end: " + l.result(ctx))
}

func (l *setLab) expect(ctx context.Context, count int, want spec) {
	GinkgoHelper()
	want.Kind = "TestSpec"
	Expect(l.machines(ctx)).To(HaveLen(count))
	for _, m := range l.machines(ctx) {
		Expect(specOf(&m)).To(Equal(want))
	}
}

var _ = Describe("A MachineSet that is rolled out by itself", func() {
	for _, writes := range []int{0, 1} {
		It("changes Machines in place where the plan allows it"+crashes(writes), func(ctx SpecContext) {
			l := newSetLab(ctx)
			former := l.uids(ctx)
			l.most, l.least, l.writes = 3, 3, writes
			l.ask(ctx, &tagged, by(v1beta1.InPlaceOrReplace))
			l.settle(ctx)
			l.expect(ctx, 3, tagged)
			Expect(l.uids(ctx)).To(Equal(former))
			Expect(l.result(ctx)).To(Equal("True All Machines are up to date"))
		})

		It("replaces Machines whose plan is refused"+crashes(writes), func(ctx SpecContext) {
			l := newSetLab(ctx)
			former := l.uids(ctx)
			l.most, l.least, l.writes = 4, 3, writes
			l.ask(ctx, &large, by(v1beta1.InPlaceOrReplace))
			l.settle(ctx)
			l.expect(ctx, 3, large)
			Expect(l.uids(ctx)).NotTo(ContainElements(former))
			Expect(l.cloud.refusals).To(BeNumerically("<=", 6), "a result is written, then noted")
		})

		It("replaces Machines that are as the template for a restart"+crashes(writes), func(ctx SpecContext) {
			l := newSetLab(ctx)
			former := l.uids(ctx)
			newest := slices.MaxFunc(l.machines(ctx), func(x, y machinev1beta1.Machine) int {
				return x.CreationTimestamp.Compare(y.CreationTimestamp.Time)
			})
			time.Sleep(time.Until(newest.CreationTimestamp.Add(time.Second))) // times have whole seconds
			l.most, l.least, l.writes = 4, 3, writes
			annotations := by(v1beta1.RollingUpdate)
			annotations[v1beta1.ReplaceUntilAnnotation] = newest.CreationTimestamp.UTC().Format(time.RFC3339)
			l.ask(ctx, nil, annotations)
			l.settle(ctx)
			l.expect(ctx, 3, spec{Size: "small", Tag: "a"})
			for _, uid := range former {
				Expect(l.uids(ctx)).NotTo(ContainElement(uid))
			}
		})
	}

	It("never replaces with InPlace, and says why", func(ctx SpecContext) {
		l := newSetLab(ctx)
		former := l.uids(ctx)
		l.most, l.least = 3, 3
		l.ask(ctx, &large, by(v1beta1.InPlace))
		l.settle(ctx)
		l.expect(ctx, 3, spec{Size: "small", Tag: "a"})
		Expect(l.uids(ctx)).To(Equal(former))
		Expect(l.result(ctx)).To(And(HavePrefix("False 3 Machines need new instances: "), ContainSubstring("size can only be changed by a new instance")))
		before := l.cloud.refusals
		l.most = 4
		l.ask(ctx, nil, by(v1beta1.InPlaceOrReplace))
		l.settle(ctx)
		l.expect(ctx, 3, large)
		Expect(l.cloud.refusals).To(Equal(before), "no refused plan is made again")
	})

	It("stops at a failed change until the template changes", func(ctx SpecContext) {
		l := newSetLab(ctx)
		former := l.uids(ctx)
		l.most, l.least = 3, 3
		l.ask(ctx, &bad, by(v1beta1.InPlaceOrReplace))
		l.rounds(ctx, 15)
		Expect(l.result(ctx)).To(And(HavePrefix("False Machine hollow-"), ContainSubstring("the cloud does not like the tag")))
		Expect(slices.DeleteFunc(l.machines(ctx), func(m machinev1beta1.Machine) bool { return specOf(&m).Tag != "bad" })).To(HaveLen(1))
		l.ask(ctx, &tagged, by(v1beta1.InPlaceOrReplace))
		l.settle(ctx)
		l.expect(ctx, 3, tagged)
		Expect(l.uids(ctx)).To(Equal(former))
	})

	It("replaces a Machine whose change failed, if asked to", func(ctx SpecContext) {
		l := newSetLab(ctx)
		l.most, l.least = 4, 3
		l.ask(ctx, &bad, by(v1beta1.InPlaceOrReplace))
		l.rounds(ctx, 6)
		l.ask(ctx, nil, by(v1beta1.RollingUpdate))
		l.settle(ctx)
		l.expect(ctx, 3, bad)
	})

	It("takes no strategy that it does not know, and no control plane", func(ctx SpecContext) {
		l := newSetLab(ctx)
		l.ask(ctx, &large, by("Inplace"))
		l.rounds(ctx, 4)
		Expect(l.result(ctx)).To(HavePrefix(`False The annotation machine-iac.io/rollout is "Inplace"; write one of ["InPlaceOrReplace" "InPlace" "RollingUpdate"]`))
		set := l.current(ctx)
		set.Annotations[v1beta1.RolloutAnnotation] = string(v1beta1.RollingUpdate)
		set.Spec.Template.Labels["machine.openshift.io/cluster-api-machine-role"] = "master"
		Expect(plane.Client.Update(ctx, set)).To(Succeed())
		l.rounds(ctx, 4)
		Expect(l.result(ctx)).To(HavePrefix("False The labels of the template name the control plane"))
		l.expect(ctx, 3, spec{Size: "small", Tag: "a"})
	})

	It("touches no further Machine once the annotation is gone", func(ctx SpecContext) {
		l := newSetLab(ctx)
		l.ask(ctx, &large, by(v1beta1.RollingUpdate))
		Eventually(func() map[string]string { l.rounds(ctx, 1); return l.current(ctx).Annotations }).Should(HaveKey(v1beta1.SurgeAnnotation))
		annotations := l.current(ctx).Annotations
		delete(annotations, v1beta1.RolloutAnnotation)
		l.ask(ctx, nil, annotations)
		l.rounds(ctx, 8)
		Expect(l.current(ctx).Annotations).To(BeEmpty())
		Expect(l.machines(ctx)).To(HaveLen(3))
		Expect(l.result(ctx)).To(BeEmpty())
	})

	It("ends a change in place that goes on when the annotation is removed", func(ctx SpecContext) {
		l := newSetLab(ctx)
		l.ask(ctx, &large, by(v1beta1.InPlaceOrReplace))
		Eventually(func() bool {
			l.hold = moved
			l.rounds(ctx, 1)
			return slices.ContainsFunc(l.machines(ctx), func(m machinev1beta1.Machine) bool { return moved(&m) })
		}).Should(BeTrue())
		l.ask(ctx, nil, nil)
		l.hold = nil
		l.rounds(ctx, 6)
		l.expect(ctx, 3, spec{Size: "small", Tag: "a"})
	})

	It("follows a new number of replicas and a new template on its way", func(ctx SpecContext) {
		l := newSetLab(ctx)
		l.ask(ctx, &large, by(v1beta1.RollingUpdate))
		l.rounds(ctx, 5)
		l.replicas = 5
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`))
		Expect(plane.Client.Patch(ctx, l.current(ctx), patch)).To(Succeed())
		l.rounds(ctx, 2)
		l.ask(ctx, &tagged, by(v1beta1.RollingUpdate))
		l.settle(ctx)
		l.expect(ctx, 5, tagged)
	})

	It("is ended by a MachineDeployment that adopts the MachineSet", func(ctx SpecContext) {
		l := newSetLab(ctx)
		l.most, l.least = 4, 3
		set := l.current(ctx)
		set.Spec.DeletePolicy = string(machinev1beta1.OldestMachineSetDeletePolicy)
		Expect(plane.Client.Update(ctx, set)).To(Succeed())
		former := l.uids(ctx)
		next := spec{Size: "large", Never: true}
		l.ask(ctx, &next, by(v1beta1.RollingUpdate))
		l.rounds(ctx, 4)
		Expect(l.machines(ctx)).To(HaveLen(4))
		template(next)(l.deployment)
		Expect(plane.Client.Create(ctx, l.deployment)).To(Succeed())
		l.lab.rounds(ctx, 10)
		Expect(l.uids(ctx)).To(Equal(former))
		for _, key := range []string{v1beta1.RolloutAnnotation, v1beta1.ReplaceUntilAnnotation, v1beta1.SurgeAnnotation} {
			Expect(l.current(ctx).Annotations).NotTo(HaveKey(key))
		}
	})

	It("leaves no Machine that changes in place for ever to a MachineDeployment that adopts it", func(ctx SpecContext) {
		l := newSetLab(ctx)
		l.hold = moved
		l.ask(ctx, &large, by(v1beta1.InPlaceOrReplace))
		Eventually(func() int { l.rounds(ctx, 1); return l.moving(ctx) }).Should(Equal(1))
		l.hold = nil
		template(large)(l.deployment)
		Expect(plane.Client.Create(ctx, l.deployment)).To(Succeed())
		l.lab.rounds(ctx, 10)
		Expect(l.moving(ctx)).To(BeZero())
		for _, m := range l.machines(ctx) {
			Expect(m.Annotations).NotTo(HaveKey(v1beta1.FormerSpecAnnotation))
		}
	})

	It("keeps its available Machines when it is stopped before the new one is available", func(ctx SpecContext) {
		l := newSetLab(ctx)
		former := l.uids(ctx)
		l.most, l.least = 4, 3
		set := l.current(ctx)
		set.Spec.DeletePolicy = string(machinev1beta1.OldestMachineSetDeletePolicy)
		Expect(plane.Client.Update(ctx, set)).To(Succeed())
		l.ask(ctx, &spec{Size: "large", Never: true}, by(v1beta1.RollingUpdate))
		l.rounds(ctx, 4)
		Expect(l.machines(ctx)).To(HaveLen(4))
		annotations := l.current(ctx).Annotations
		delete(annotations, v1beta1.RolloutAnnotation)
		l.ask(ctx, nil, annotations)
		l.rounds(ctx, 6)
		Expect(l.uids(ctx)).To(Equal(former))
	})

	DescribeTable("refuses a restart up to a time that it cannot use", func(ctx SpecContext, until, why string) {
		l := newSetLab(ctx)
		l.most = 3
		annotations := by(v1beta1.RollingUpdate)
		annotations[v1beta1.ReplaceUntilAnnotation] = until
		l.ask(ctx, &large, annotations)
		l.rounds(ctx, 4)
		Expect(l.result(ctx)).To(And(HavePrefix("False The annotation machine-iac.io/replace-created-until is "), ContainSubstring(why)))
		l.expect(ctx, 3, spec{Size: "small", Tag: "a"})
	},
		Entry("in the future, as every new Machine would be replaced", "2999-01-01T00:00:00Z", "in the future"),
		Entry("malformed", "yesterday", "RFC 3339"),
	)

	DescribeTable("replaces a Machine whose plan is refused", func(ctx SpecContext, spoil func(context.Context, *setLab)) {
		l := newSetLab(ctx)
		l.most, l.least, l.hold = 4, 3, moved
		l.ask(ctx, &large, by(v1beta1.InPlaceOrReplace))
		Eventually(func() int { l.rounds(ctx, 1); return l.moving(ctx) }).Should(Equal(1))
		spoil(ctx, l)
		l.hold = nil
		l.rounds(ctx, 3)
		Expect(l.moving(ctx)).To(BeZero())
		l.settle(ctx)
		l.expect(ctx, 3, large)
	},
		Entry("if admission accepts the former providerSpec no more", func(_ context.Context, l *setLab) {
			l.invalid = spec{Kind: "TestSpec", Size: "small", Tag: "a"}
		}),
		Entry("if the former providerSpec cannot be read", func(ctx context.Context, l *setLab) {
			for _, m := range l.machines(ctx) {
				if moved(&m) {
					l.edit(ctx, &m, func(m *machinev1beta1.Machine) { m.Annotations[v1beta1.FormerSpecAnnotation] = "{" })
				}
			}
		}),
	)

	It("ends though admission completes each Machine, and sees a change by hand", func(ctx SpecContext) {
		l := newSetLab(ctx)
		l.zone, l.most, l.least = "z", 4, 3
		for _, step := range []struct {
			to       spec
			strategy v1beta1.MachineDeploymentStrategyType
		}{{large, v1beta1.RollingUpdate}, {small, v1beta1.InPlaceOrReplace}, {tagged, v1beta1.InPlace}} {
			l.ask(ctx, &step.to, by(step.strategy))
			l.settle(ctx)
			step.to.Zone = "z"
			l.expect(ctx, 3, step.to)
			inSync := machineapi.FindCondition(l.current(ctx).Status.Conditions, v1beta1.ConditionTemplateInSync)
			Expect(inSync.Status).To(BeEquivalentTo("True"), inSync.Message)
		}
		l.edit(ctx, &l.machines(ctx)[0], func(m *machinev1beta1.Machine) {
			m.Spec.ProviderSpec.Value.Raw = []byte(`{"kind":"TestSpec","size":"small","tag":"c"}`)
		})
		l.ask(ctx, nil, by(v1beta1.InPlace))
		l.settle(ctx)
		l.expect(ctx, 3, spec{Size: "small", Tag: "b", Zone: "z"})
	})

	It("is woken by what changes", func(ctx SpecContext) {
		l := newSetLab(ctx)
		mgr := suite.NewManager(plane, l.namespace)
		Expect(machinedeployment.SetupSetsWithManager(mgr, machinedeployment.Options{})).To(Succeed())
		suite.Run(mgr)
		for _, next := range []spec{tagged, large} {
			l.ask(ctx, &next, by(v1beta1.InPlaceOrReplace))
			Eventually(func() bool {
				l.follow(ctx)
				return l.current(ctx).Annotations[v1beta1.RolloutAnnotation] == ""
			}).WithTimeout(time.Minute).Should(BeTrue())
			l.expect(ctx, 3, next)
		}
	})

	It("writes nothing that only a stale cache asks for", func(ctx SpecContext) {
		l := newSetLab(ctx)
		l.ask(ctx, &tagged, by(v1beta1.InPlaceOrReplace))
		snapshot := fake.NewClientBuilder().WithScheme(plane.Scheme).WithLists(
			&machinev1beta1.MachineSetList{Items: l.sets(ctx)}, &machinev1beta1.MachineList{Items: l.machines(ctx)}).Build()
		l.settle(ctx)
		before := l.machines(ctx)
		controller := machinedeployment.NewSets(machinedeployment.Options{Common: common(stale{plane.Client, snapshot})})
		_, err := controller.Reconcile(ctx, reconcile.Request{NamespacedName: l.key})
		Expect(err).NotTo(HaveOccurred())
		Expect(l.machines(ctx)).To(Equal(before))
	})

	It("leaves the MachineSets of MachineDeployments alone", func(ctx SpecContext) {
		l := newLab(ctx)
		set := l.set(ctx, small)
		set.Annotations[v1beta1.RolloutAnnotation] = string(v1beta1.RollingUpdate)
		set.Spec.Template.Spec.ProviderSpec.Value.Raw = []byte(`{"kind":"TestSpec","size":"large"}`)
		Expect(plane.Client.Update(ctx, set)).To(Succeed())
		controller := machinedeployment.NewSets(machinedeployment.Options{Common: common(&crashing{Client: plane.Client})})
		_, err := controller.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
		Expect(err).NotTo(HaveOccurred())
	})
})

func crashes(writes int) string {
	if writes == 0 {
		return ""
	}
	return ", though the manager crashes after each write"
}
