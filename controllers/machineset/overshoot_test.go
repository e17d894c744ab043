package machineset_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("A MachineSet whose Machines do not stay", func() {
	const replicas, overshoot = 2, 3
	var (
		namespace  string
		set        *machinev1beta1.MachineSet
		recorder   *events.FakeRecorder
		controller *machineset.Controller
	)
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		set = builder.In(namespace, builder.MachineSet(builder.WithReplicas(replicas)))
		create(ctx, set)
		recorder = events.NewFakeRecorder(100)
		var err error
		controller, err = machineset.New(machineset.Options{Common: pipeline.Common{
			Client: plane.Client, Reader: plane.Client, Recorder: recorder,
		}, Overshoot: overshoot, InFlightTimeout: time.Nanosecond})
		Expect(err).NotTo(HaveOccurred())
	})
	all := func(ctx context.Context) []machinev1beta1.Machine {
		GinkgoHelper()
		list := &machinev1beta1.MachineList{}
		Expect(plane.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		return list.Items
	}
	reconcile := func(ctx context.Context) {
		GinkgoHelper()
		_, err := controller.Reconcile(ctx, requestFor(set))
		Expect(err).NotTo(HaveOccurred())
	}
	frozen := func(ctx context.Context) *machinev1beta1.Condition {
		GinkgoHelper()
		return machineapi.FindCondition(statusOf(ctx, set)().Conditions, v1beta1.ConditionFrozen)
	}
	relabel := func(ctx context.Context, m *machinev1beta1.Machine) {
		GinkgoHelper()
		delete(m.Labels, builder.MachineSetLabel)
		Expect(plane.Client.Update(ctx, m)).To(Succeed())
	}
	remove := func(ctx context.Context, m *machinev1beta1.Machine) {
		GinkgoHelper()
		m.Finalizers = []string{builder.MachineFinalizer} // its instance cannot be destroyed
		Expect(plane.Client.Update(ctx, m)).To(Succeed())
		Expect(plane.Client.Delete(ctx, m)).To(Succeed())
	}
	destroy := func(ctx context.Context, count int) {
		GinkgoHelper()
		for _, m := range all(ctx)[:count] {
			m.Finalizers = nil
			Expect(plane.Client.Update(ctx, &m)).To(Succeed())
			Expect(client.IgnoreNotFound(plane.Client.Delete(ctx, &m))).To(Succeed())
		}
	}

	DescribeTable("stops, says so, and goes on by itself", func(ctx SpecContext, spoil func(context.Context, *machinev1beta1.Machine)) {
		for range 20 {
			reconcile(ctx)
			for _, m := range living(ctx, namespace) {
				if m.Labels[builder.MachineSetLabel] != "" {
					spoil(ctx, &m)
				}
			}
		}
		Expect(all(ctx)).To(HaveLen(2*replicas + overshoot))
		Expect(frozen(ctx).Message).To(ContainSubstring("7 exist"))
		Expect(recorder.Events).To(Receive(ContainSubstring("TooManyMachines")))
		Expect(recorder.Events).NotTo(Receive(), "one event is enough")

		By("having one Machine less")
		destroy(ctx, 1)
		reconcile(ctx)
		Expect(frozen(ctx)).To(HaveField("Message", And(ContainSubstring("6 exist"), ContainSubstring("fewer than 6"))))
		Expect(recorder.Events).NotTo(Receive())

		By("having fewer")
		destroy(ctx, 3)
		reconcile(ctx)
		Expect(frozen(ctx)).To(BeNil())
		reconcile(ctx)
		Expect(all(ctx)).To(HaveLen(3 + replicas))
	},
		Entry("if something changes their labels", relabel),
		Entry("if something deletes them, and their instances stay", remove),
	)

	It("does not mind Machines that leave after a scale down, or that a MachineDeployment's rollout leaves behind", func(ctx SpecContext) {
		scale(ctx, set, 8)
		for range 3 {
			reconcile(ctx)
		}
		for _, m := range living(ctx, namespace) {
			remove(ctx, &m)
		}
		reconcile(ctx)
		Expect(living(ctx, namespace)).To(HaveLen(8))
		Expect(frozen(ctx)).To(BeNil())

		By("shrinking before any has a Node, and growing again")
		scale(ctx, set, 30)
		reconcile(ctx)
		for _, m := range living(ctx, namespace) {
			m.Finalizers = []string{builder.MachineFinalizer}
			Expect(plane.Client.Update(ctx, &m)).To(Succeed())
		}
		scale(ctx, set, 8)
		reconcile(ctx)
		scale(ctx, set, 9)
		reconcile(ctx)
		Expect(living(ctx, namespace)).To(HaveLen(9))

		By("shrinking in a rollout of eight Machines, and growing again")
		annotation := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"machine.openshift.io/desired-replicas":"8"}}}`))
		Expect(plane.Client.Patch(ctx, set, annotation)).To(Succeed())
		scale(ctx, set, 2)
		reconcile(ctx)
		scale(ctx, set, 3)
		reconcile(ctx)
		Expect(living(ctx, namespace)).To(HaveLen(3))
	})
})
