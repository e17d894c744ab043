package machine_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// careful is an actuator whose deletions wait for volumes.
type careful struct {
	*fake.Actuator
	wait time.Duration
}

func (a *careful) VolumeWait(*machinev1beta1.Machine) time.Duration { return a.wait }

var _ = Describe("The deletion of a Machine with volumes attached to its Node", func() {
	const first, second = "kubernetes.io/csi/csi.example.com^a", "kubernetes.io/csi/csi.example.com^b"
	var (
		actuator *careful
		subject  *machinev1beta1.Machine
		node     *corev1.Node
		clock    *clocktesting.FakePassiveClock
		recorder *events.FakeRecorder
		reader   client.Client
		p        *passes
	)
	BeforeEach(func(ctx SpecContext) {
		namespace, err := plane.Namespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		actuator = &careful{Actuator: &fake.Actuator{}, wait: 10 * time.Minute}
		subject = builder.In(namespace, builder.Machine())
		create(ctx, subject)
		clock, recorder, reader = clocktesting.NewFakePassiveClock(time.Now()), events.NewFakeRecorder(100), plane.Client
		p = &passes{client: &notingClient{Client: plane.Client}, key: client.ObjectKeyFromObject(subject)}
	})
	// attach sets which volumes are attached to the Node, and whether its kubelet reports.
	attach := func(ctx context.Context, ready corev1.ConditionStatus, volumes ...corev1.UniqueVolumeName) {
		GinkgoHelper()
		before := node.DeepCopy()
		node.Status.VolumesAttached = nil
		for _, volume := range volumes {
			node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: volume, DevicePath: ""})
		}
		builder.WithReady(ready, time.Now())(node)
		Expect(plane.Client.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
	}
	// drained brings the Machine to where its Node is drained, and its instance would be deleted.
	drained := func(ctx context.Context, mods ...func(*machinev1beta1.Machine)) {
		GinkgoHelper()
		var err error
		p.controller, err = machine.New(machine.Options{
			Common: pipeline.Common{Client: p.client, Reader: reader, Recorder: recorder, Clock: clock}, Actuator: actuator,
		})
		Expect(err).NotTo(HaveOccurred())
		for range 4 {
			p.next(ctx)
		}
		node = link(ctx, subject)
		attach(ctx, corev1.ConditionTrue, second, first)
		for _, mod := range mods {
			edit(ctx, subject, mod)
		}
		Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		p.next(ctx)
		sayDrained(ctx, subject, corev1.ConditionTrue)
	}
	deletes := func() int { return len(actuator.Calls(fake.Delete)) }
	sent := func() (all []string) {
		for len(recorder.Events) > 0 {
			all = append(all, <-recorder.Events)
		}
		return all
	}
	held := func(ctx context.Context) time.Duration {
		GinkgoHelper()
		_, result := p.next(ctx)
		Expect(deletes()).To(BeZero(), "the instance was deleted")
		return result.RequeueAfter
	}
	released := func(ctx context.Context) {
		GinkgoHelper()
		p.next(ctx)
		Expect(deletes()).To(Equal(1), "the instance was not deleted")
		Expect(gone(ctx, subject)()).To(BeTrue())
	}

	It("waits until they are detached, and says once what it waits for", func(ctx SpecContext) {
		drained(ctx)
		Expect(held(ctx)).To(Equal(10 * time.Second))
		waiting := And(ContainSubstring("Node "+node.Name+" has volumes attached: "+first+", "+second+". "), ContainSubstring("or at "),
			ContainSubstring("machine.openshift.io/exclude-node-draining"))
		Expect(fresh(ctx, subject).Status.Conditions).To(ContainElement(And(HaveField("Type", machine.VolumesDetached), HaveField("Status", corev1.ConditionFalse),
			HaveField("Severity", machinev1beta1.ConditionSeverityInfo), HaveField("Reason", "VolumesAttached"), HaveField("Message", waiting))))
		Expect(sent()).To(ConsistOf(And(HavePrefix("Normal WaitingForVolumes"), waiting)))

		wrote, _ := p.next(ctx)
		Expect(wrote).To(BeEmpty(), "nothing has changed")
		attach(ctx, corev1.ConditionTrue, second)
		held(ctx)
		Expect(fresh(ctx, subject).Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("attached: "+second+". "))))
		Expect(sent()).To(BeEmpty())

		actuator.Steps = 1
		attach(ctx, corev1.ConditionTrue)
		p.next(ctx)
		Expect(deletes()).To(Equal(1))
		Expect(fresh(ctx, subject).Status).To(haveCondition(machine.VolumesDetached, "True", "", BeEmpty()))
		p.next(ctx)
		Expect(gone(ctx, subject)()).To(BeTrue())
		Expect(gone(ctx, node)()).To(BeTrue())
		Expect(sent()).To(BeEmpty())
	})

	It("waits no longer than the actuator says from the end of the drain on", func(ctx SpecContext) {
		drained(ctx)
		end := machineapi.FindCondition(fresh(ctx, subject).Status.Conditions, machinev1beta1.MachineDrained).LastTransitionTime
		clock.SetTime(end.Add(10*time.Minute - 4*time.Second))
		Expect(held(ctx)).To(Equal(4 * time.Second))
		Expect(sent()).To(HaveLen(1))
		clock.SetTime(end.Add(10 * time.Minute))
		actuator.Steps = 1
		p.next(ctx)
		Expect(deletes()).To(Equal(1))
		Expect(fresh(ctx, subject).Status).To(haveCondition(machine.VolumesDetached, "False", "WaitEnded", ContainSubstring("10m0s after the drain: deleting the instance")))
		Expect(sent()).To(ConsistOf(HavePrefix("Warning VolumesStillAttached")))
		p.next(ctx)
		Expect(sent()).To(BeEmpty())
		Expect(gone(ctx, subject)()).To(BeTrue())
	})

	It("does not wait for a kubelet that does not report", func(ctx SpecContext) {
		drained(ctx)
		held(ctx)
		attach(ctx, corev1.ConditionUnknown, first)
		actuator.Steps = 1
		p.next(ctx)
		Expect(deletes()).To(Equal(1))
		Expect(fresh(ctx, subject).Status).To(haveCondition(machine.VolumesDetached, "False", "NodeUnreachable", ContainSubstring("Its kubelet is unreachable")))
		Expect(sent()).To(ConsistOf(HavePrefix("Normal WaitingForVolumes"), HavePrefix("Warning VolumesStillAttached")))
	})

	It("waits for a kubelet that reports that the Node is not ready", func(ctx SpecContext) {
		drained(ctx)
		attach(ctx, corev1.ConditionFalse, first)
		held(ctx)
	})

	It("does not wait where the drain was skipped", func(ctx SpecContext) {
		drained(ctx, builder.WithAnnotations(map[string]string{"machine.openshift.io/exclude-node-draining": ""}))
		released(ctx)
		Expect(sent()).To(BeEmpty())
	})

	It("stops waiting when the drain is to be skipped after all", func(ctx SpecContext) {
		drained(ctx)
		held(ctx)
		edit(ctx, subject, builder.WithAnnotations(map[string]string{"machine.openshift.io/exclude-node-draining": ""}))
		released(ctx)
	})

	It("does not wait where the actuator says nothing of it", func(ctx SpecContext) {
		actuator.wait = 0
		drained(ctx)
		released(ctx)
	})

	It("does not wait for a Node that is gone, nor for another of its name", func(ctx SpecContext) {
		drained(ctx)
		held(ctx)
		Expect(plane.Client.Delete(ctx, node)).To(Succeed())
		again := builder.Node(func(n *corev1.Node) { n.Name = node.Name })
		create(ctx, again)
		node = again
		attach(ctx, corev1.ConditionTrue, first)
		released(ctx)
		Expect(gone(ctx, again)()).To(BeFalse(), "the Node of another was deleted")
	})

	It("deletes nothing while the Node cannot be read", func(ctx SpecContext) {
		reader = &blindClient{Client: plane.Client}
		drained(ctx)
		_, _, err := p.try(ctx)
		Expect(err).To(MatchError(ContainSubstring("reading Node " + node.Name + " for the volumes that are attached to it: the API server is away")))
		Expect(deletes()).To(BeZero())
	})
})

// blindClient cannot read Nodes.
type blindClient struct{ client.Client }

func (c *blindClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*corev1.Node); ok {
		return errors.New("the API server is away")
	}
	return c.Client.Get(ctx, key, object, options...)
}
