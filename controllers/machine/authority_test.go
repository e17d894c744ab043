package machine_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// These stand on an API server of their own, whose CRDs have the field.
var _ = Describe("A Machine that another API may be in charge of", Ordered, func() {
	var (
		namespace string
		actuator  *fake.Actuator
	)
	BeforeAll(func() {
		long.Test(GinkgoTB()) // an API server of its own
		without := plane
		DeferCleanup(func() { plane = without })
		plane = suite.Start(controlplane.CustomNoUpgrade)
	})
	BeforeEach(func(ctx SpecContext) {
		namespace = suite.Namespace(ctx, plane)
		actuator = &fake.Actuator{}
	})
	// made stores a Machine whose spec wants api; of whom the status says that it is in charge if
	// that is not empty.
	made := func(ctx context.Context, api, inCharge machinev1beta1.MachineAuthority) *machinev1beta1.Machine {
		GinkgoHelper()
		subject := builder.In(namespace, builder.Machine(func(m *machinev1beta1.Machine) {
			m.Spec.AuthoritativeAPI, m.Status.AuthoritativeAPI = api, inCharge
		}))
		create(ctx, subject)
		return subject
	}
	handOver := func(ctx context.Context, subject *machinev1beta1.Machine, inCharge machinev1beta1.MachineAuthority) {
		GinkgoHelper()
		before := fresh(ctx, subject)
		after := before.DeepCopy()
		after.Status.AuthoritativeAPI = inCharge
		Expect(plane.Client.Status().Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
	}
	const message = "The AuthoritativeAPI status is set to "

	It("takes over what its spec asks for first, and is served then", func(ctx SpecContext) {
		subject := made(ctx, "", "")
		p := byHand(subject, actuator, plane.Client)
		wrote, result := p.next(ctx)
		Expect(wrote).To(Equal([]string{patchedStatus}))
		Expect(result.RequeueAfter).To(BeZero())
		machine := fresh(ctx, subject)
		Expect(machine.Status.AuthoritativeAPI).To(Equal(machinev1beta1.MachineAuthorityMachineAPI))
		Expect(machine.Status.Conditions).To(BeEmpty())
		Expect(machine.Finalizers).To(BeEmpty())

		p.next(ctx)
		p.next(ctx)
		machine = fresh(ctx, subject)
		Expect(machine.Status).To(And(havePhase("Provisioning"), haveCondition("InstanceExists", "False", "InstanceNotCreated", Not(BeEmpty()))))
		Expect(pausedOf(machine)).To(Equal(machinev1beta1.Condition{
			Type: "Paused", Status: corev1.ConditionFalse, Severity: machinev1beta1.ConditionSeverityInfo,
			Reason: "AuthoritativeAPIMachineAPI", Message: message + "'MachineAPI'",
		}))
	})

	DescribeTable("is left alone, and says so, while it is not ours", func(ctx SpecContext, inCharge machinev1beta1.MachineAuthority, deleted bool) {
		subject := made(ctx, machinev1beta1.MachineAuthorityClusterAPI, inCharge)
		if deleted {
			edit(ctx, subject, func(m *machinev1beta1.Machine) { builder.WithFinalizer()(m) })
			Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		}
		before := fresh(ctx, subject)
		p := byHand(subject, actuator, plane.Client)
		wrote, result := p.next(ctx)
		Expect(wrote).To(Equal([]string{patchedStatus}))
		Expect(result.RequeueAfter).To(BeZero())
		after := fresh(ctx, subject)
		Expect(pausedOf(after)).To(Equal(machinev1beta1.Condition{
			Type: "Paused", Status: corev1.ConditionTrue, Reason: "AuthoritativeAPINotMachineAPI", Message: message + "'" + string(inCharge) + "'",
		}))
		By("saying nothing else")
		Expect(after.Status.Conditions).To(HaveLen(1))
		Expect(after.Status.Phase).To(BeNil())
		Expect(after.Finalizers).To(Equal(before.Finalizers))
		Expect(after.Spec).To(Equal(before.Spec))
		Expect(actuator.Calls()).To(BeEmpty())
		By("resting")
		wrote, _ = p.next(ctx)
		Expect(wrote).To(BeEmpty())
	},
		Entry("but the other API's", machinev1beta1.MachineAuthorityClusterAPI, false),
		Entry("but on its way from one to the other", machinev1beta1.MachineAuthorityMigrating, false),
		Entry("and being deleted", machinev1beta1.MachineAuthorityClusterAPI, true),
		Entry("and being deleted on its way", machinev1beta1.MachineAuthorityMigrating, true),
	)

	It("is taken up once it is ours, and put down where it stands", func(ctx SpecContext) {
		startManager(namespace, actuator)
		subject := made(ctx, machinev1beta1.MachineAuthorityClusterAPI, "")
		status := func() machinev1beta1.MachineStatus { return fresh(ctx, subject).Status }
		Eventually(status).Should(HaveField("AuthoritativeAPI", machinev1beta1.MachineAuthorityClusterAPI))
		Eventually(func() corev1.ConditionStatus { return pausedOf(fresh(ctx, subject)).Status }).Should(Equal(corev1.ConditionTrue))
		handOver(ctx, subject, machinev1beta1.MachineAuthorityMigrating)
		handOver(ctx, subject, machinev1beta1.MachineAuthorityMachineAPI)
		Eventually(status).Should(havePhase("Provisioned"))
		Expect(pausedOf(fresh(ctx, subject)).Status).To(Equal(corev1.ConditionFalse))

		handOver(ctx, subject, machinev1beta1.MachineAuthorityMigrating)
		Eventually(func() corev1.ConditionStatus { return pausedOf(fresh(ctx, subject)).Status }).Should(Equal(corev1.ConditionTrue))
		before := callsAtRest(actuator)
		Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		touch(ctx, subject)
		Consistently(func() int { return len(actuator.Calls()) }).Should(Equal(before))
		Expect(status()).To(havePhase("Provisioned"))

		handOver(ctx, subject, machinev1beta1.MachineAuthorityMachineAPI)
		drain(ctx, subject, corev1.ConditionTrue)
		Eventually(gone(ctx, subject)).Should(BeTrue())
		Expect(actuator.Instances()).To(BeEmpty())
	})
})

// pausedOf returns the condition Paused without its time.
func pausedOf(machine *machinev1beta1.Machine) machinev1beta1.Condition {
	for _, c := range machine.Status.Conditions {
		if c.Type == "Paused" {
			return machinev1beta1.Condition{Type: c.Type, Status: c.Status, Severity: c.Severity, Reason: c.Reason, Message: c.Message}
		}
	}
	return machinev1beta1.Condition{}
}
