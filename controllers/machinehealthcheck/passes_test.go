package machinehealthcheck_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// now is the time of all passes by hand. What is stored has whole seconds.
var now = time.Now().UTC().Truncate(time.Second)

func ago(d time.Duration) time.Time { return now.Add(-d) }

type (
	machineMod = func(*machinev1beta1.Machine)
	checkMod   = func(*machinev1beta1.MachineHealthCheck)
)

func orphaned(m *machinev1beta1.Machine) { m.OwnerReferences = nil }

var baremetal = builder.WithCheckAnnotations(map[string]string{"machine.openshift.io/remediation-strategy": "external-baremetal"})

// row is one Machine under one MachineHealthCheck, and what a pass over it comes to.
type row struct {
	check []checkMod
	// node is the Ready condition of the Machine's Node and for how long; nil for no nodeRef.
	node    *corev1.ConditionStatus
	lasting time.Duration
	// nodeGone removes the Node that the Machine refers to.
	nodeGone bool
	machine  []machineMod
	// going deletes the Machine before the pass.
	going bool

	wantAfter       time.Duration
	wantEvents      []string
	wantDeleted     bool
	wantAnnotated   bool
	wantHealthy     int
	wantMoreAllowed int32
	// wantCondition is RemediationAllowed as "status reason"; True when empty.
	wantCondition string
	// wantUntouched is a status as it was born.
	wantUntouched bool
}

var _ = Describe("A pass over one Machine", func() {
	not, is := ptr.To(corev1.ConditionFalse), ptr.To(corev1.ConditionTrue)
	DescribeTable("of which", func(ctx SpecContext, r row) {
		namespace := suite.Namespace(ctx, plane)
		subject := withoutNode(namespace, append(r.machine, builder.WithFinalizer())...)
		if r.node != nil {
			subject = onNode(namespace, *r.node, ago(r.lasting), append(r.machine, builder.WithFinalizer())...)
		}
		subject.create(ctx)
		if r.nodeGone {
			Expect(plane.Client.Delete(ctx, subject.node)).To(Succeed())
		}
		if r.going {
			Expect(plane.Client.Delete(ctx, subject.machine)).To(Succeed())
		}
		check := builder.In(namespace, builder.MachineHealthCheck(r.check...))
		create(ctx, check)

		p := byHand(check, now)
		got := p.next(ctx)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.after).To(Equal(r.wantAfter))
		if r.wantEvents == nil {
			r.wantEvents = []string{}
		}
		Expect(got.events).To(Equal(r.wantEvents))

		stored := &machinev1beta1.Machine{}
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(subject.machine), stored)).To(Succeed())
		Expect(!stored.DeletionTimestamp.IsZero()).To(Equal(r.wantDeleted || r.going))
		Expect(metav1.HasAnnotation(stored.ObjectMeta, "host.metal3.io/external-remediation")).To(Equal(r.wantAnnotated))

		status := statusOf(ctx, check)
		if r.wantUntouched {
			Expect(status).To(Equal(machinev1beta1.MachineHealthCheckStatus{}))
			Expect(got.writes).To(BeEmpty())
			return
		}
		Expect(status.ExpectedMachines).To(HaveValue(Equal(1)))
		Expect(status.CurrentHealthy).To(HaveValue(Equal(r.wantHealthy)))
		Expect(status.RemediationsAllowed).To(Equal(r.wantMoreAllowed))
		if r.wantCondition == "" {
			r.wantCondition = "True"
		}
		Expect(conditionOf(ctx, check, machinev1beta1.RemediationAllowedCondition)()).To(Equal(r.wantCondition))

		By("having nothing more to do or to say")
		again := p.next(ctx)
		Expect(again.writes).To(BeEmpty())
		Expect(again.events).To(BeEmpty())
		Expect(again.err).NotTo(HaveOccurred())
	},
		Entry("the Node is well", row{
			node: is, lasting: time.Hour, wantHealthy: 1, wantMoreAllowed: 1,
		}),
		Entry("the Node has been NotReady for too long", row{
			node: not, lasting: time.Hour, wantDeleted: true, wantEvents: []string{"Normal MachineDeleted"},
		}),
		Entry("the Node has not been NotReady for long", row{
			node: not, lasting: time.Minute, wantAfter: 4*time.Minute + time.Second, wantEvents: []string{"Normal DetectedUnhealthy"},
		}),
		Entry("the Node may be NotReady for long, and is looked at hourly", row{
			check: []checkMod{builder.WithConditionTimeouts(5 * time.Hour)}, node: not, lasting: time.Minute,
			wantAfter: time.Hour, wantEvents: []string{"Normal DetectedUnhealthy"},
		}),
		Entry("nobody would make another one", row{
			node: not, lasting: time.Hour, machine: []machineMod{orphaned}, wantEvents: []string{"Normal SkippedNoController"},
		}),
		Entry("the start still has time", row{
			machine: []machineMod{builder.LastUpdatedAt(ago(time.Minute))}, wantAfter: 9*time.Minute + time.Second,
		}),
		Entry("the start was never noted", row{
			wantAfter: 10 * time.Minute,
		}),
		Entry("the start takes too long", row{
			machine: []machineMod{builder.LastUpdatedAt(ago(time.Hour))}, wantDeleted: true, wantEvents: []string{"Normal MachineDeleted"},
		}),
		Entry("the start may take for ever", row{
			check: []checkMod{builder.WithStartupTimeout(0)}, machine: []machineMod{builder.LastUpdatedAt(ago(time.Hour))},
		}),
		Entry("the Node is gone", row{
			node: is, nodeGone: true, wantDeleted: true, wantEvents: []string{"Normal MachineDeleted"},
		}),
		Entry("the phase is Failed", row{
			machine: []machineMod{builder.WithPhase("Failed"), builder.LastUpdatedAt(now)}, wantDeleted: true,
			wantEvents: []string{"Normal MachineDeleted"},
		}),
		Entry("the end has begun already", row{node: not, lasting: time.Hour, going: true}),
		Entry("none may be unhealthy", row{
			check: []checkMod{builder.WithMaxUnhealthy("0")}, node: not, lasting: time.Hour,
			wantEvents: []string{"Warning RemediationRestricted"}, wantCondition: "False TooManyUnhealthy",
		}),
		Entry("more are allowed than there are", row{
			check: []checkMod{builder.WithMaxUnhealthy("3")}, node: not, lasting: time.Hour, wantMoreAllowed: 2,
			wantDeleted: true, wantEvents: []string{"Normal MachineDeleted"},
		}),
		Entry("the MachineHealthCheck is paused", row{
			check: []checkMod{builder.WithCheckAnnotations(map[string]string{"cluster.x-k8s.io/paused": "false"})}, node: not, lasting: time.Hour,
			wantUntouched: true,
		}),
		Entry("the host is bare metal", row{
			check: []checkMod{baremetal}, node: not, lasting: time.Hour, wantAnnotated: true, wantEvents: []string{"Normal ExternalAnnotationAdded"},
		}),
		Entry("the host is bare metal and the Machine Failed", row{
			check: []checkMod{baremetal}, machine: []machineMod{builder.WithPhase("Failed")}, wantDeleted: true,
			wantEvents: []string{"Normal MachineDeleted"},
		}),
		Entry("the host is under external remediation, though the Node is well", row{
			machine: []machineMod{builder.WithAnnotations(map[string]string{"host.metal3.io/external-remediation": ""})},
			node:    is, lasting: time.Hour, wantAnnotated: true,
		}),
	)
})
