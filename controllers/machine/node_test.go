package machine_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("A Machine whose Node is not linked", func() {
	var (
		namespace string
		actuator  *fake.Actuator
		subject   *machinev1beta1.Machine
		clock     *clocktesting.FakePassiveClock
		recorder  *events.FakeRecorder
		cached    client.Client
	)
	BeforeEach(func(ctx SpecContext) {
		var err error
		namespace, err = plane.Namespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		actuator, recorder = &fake.Actuator{}, events.NewFakeRecorder(100)
		clock = clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))
		startManager(namespace, actuator, func(o *machine.Options, mgr manager.Manager) {
			o.Clock, o.Recorder, cached = clock, recorder, mgr.GetClient()
		})
		subject = builder.In(namespace, builder.Machine())
		create(ctx, subject)
		Eventually(func() machinev1beta1.MachineStatus { return fresh(ctx, subject).Status }).Should(havePhase("Provisioned"))
		subject = fresh(ctx, subject)
	})
	status := func(ctx context.Context) func() machinev1beta1.MachineStatus {
		return func() machinev1beta1.MachineStatus { GinkgoHelper(); return fresh(ctx, subject).Status }
	}
	ownNode := func(ctx context.Context, mods ...func(*corev1.Node)) *corev1.Node {
		GinkgoHelper()
		node := builder.Node(append(mods, builder.WithNodeProviderID(*subject.Spec.ProviderID))...)
		create(ctx, node)
		DeferCleanup(func(ctx SpecContext) { _ = plane.Client.Delete(ctx, node) })
		Eventually(cached.Get).WithArguments(ctx, client.ObjectKeyFromObject(node), &corev1.Node{}).Should(Succeed())
		return node
	}

	It("is linked when its deletion begins, so that the Node is drained, and takes the Node along", func(ctx SpecContext) {
		node := ownNode(ctx)
		touch(ctx, subject)
		Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		Eventually(status(ctx)).Should(And(havePhase("Deleting"),
			HaveField("NodeRef", HaveValue(And(HaveField("Name", node.Name), HaveField("UID", node.UID))))))
		drain(ctx, subject, corev1.ConditionTrue)
		Eventually(gone(ctx, subject)).Should(BeTrue())
		Expect(gone(ctx, node)()).To(BeTrue())
	})

	It("takes along a Node that came after the drain", func(ctx SpecContext) {
		Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		Eventually(status(ctx)).Should(havePhase("Deleting"))
		node := ownNode(ctx)
		drain(ctx, subject, corev1.ConditionTrue)
		Eventually(gone(ctx, subject)).Should(BeTrue())
		Expect(gone(ctx, node)()).To(BeTrue())
	})

	It("leaves Nodes alone where it is not certain whose they are", func(ctx SpecContext) {
		others := ownNode(ctx, func(n *corev1.Node) {
			n.Annotations = map[string]string{"machine.openshift.io/machine": "elsewhere/other"}
		})
		Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		Eventually(status(ctx)).Should(havePhase("Deleting"))
		Expect(status(ctx)().NodeRef).To(BeNil())
		second := ownNode(ctx)
		drain(ctx, subject, corev1.ConditionTrue)
		Eventually(gone(ctx, subject)).Should(BeTrue())
		Expect(gone(ctx, others)()).To(BeFalse())
		Expect(gone(ctx, second)()).To(BeFalse())
	})

	It("says after a while what is missing, until it has a Node", func(ctx SpecContext) {
		clock.SetTime(clock.Now().Add(6 * time.Minute))
		touch(ctx, subject)
		Eventually(status(ctx)).Should(haveCondition("NodeLinked", "False", "NodeMissing",
			And(ContainSubstring(*subject.Spec.ProviderID), ContainSubstring("kubectl get csr"))))
		Eventually(recorder.Events).Should(Receive(HavePrefix("Warning NodeNotLinked ")))

		link(ctx, subject)
		Eventually(status(ctx)).Should(havePhase("Running"))
		Expect(status(ctx)().Conditions).NotTo(ContainElement(HaveField("Type", machine.NodeLinked)))
	})
})
