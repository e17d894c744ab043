package nodelink_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

const machineAnnotation = "machine.openshift.io/machine"

// Nodes have no namespace, so each spec removes those it has made before the next begins.
var _ = Describe("NodeLink", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) {
		var err error
		namespace, err = plane.Namespace(ctx)
		Expect(err).NotTo(HaveOccurred())
	})
	AfterEach(func(ctx SpecContext) {
		Expect(plane.Client.DeleteAllOf(ctx, &machinev1beta1.Machine{}, client.InNamespace(namespace))).To(Succeed())
		Expect(plane.Client.DeleteAllOf(ctx, &corev1.Node{})).To(Succeed())
	})

	create := func(ctx context.Context, objects ...client.Object) {
		GinkgoHelper()
		Expect(plane.Create(ctx, objects...)).To(Succeed())
	}
	newMachine := func(mods ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
		return builder.In(namespace, builder.Machine(mods...))
	}
	fetched := func(ctx context.Context, object client.Object) func() client.Object {
		return func() client.Object {
			GinkgoHelper()
			Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			return object
		}
	}
	nodeRef := func(ctx context.Context, machine *machinev1beta1.Machine) func() *corev1.ObjectReference {
		return func() *corev1.ObjectReference {
			GinkgoHelper()
			fetched(ctx, machine)()
			return machine.Status.NodeRef
		}
	}
	referTo := func(node *corev1.Node) OmegaMatcher {
		return Equal(&corev1.ObjectReference{Kind: "Node", Name: node.Name, UID: node.UID})
	}
	annotations := func(ctx context.Context, node *corev1.Node) func() map[string]string {
		return func() map[string]string { GinkgoHelper(); return fetched(ctx, node)().GetAnnotations() }
	}
	labels := func(ctx context.Context, node *corev1.Node) func() map[string]string {
		return func() map[string]string { GinkgoHelper(); return fetched(ctx, node)().GetLabels() }
	}
	taints := func(ctx context.Context, node *corev1.Node) func() []corev1.Taint {
		return func() []corev1.Taint { GinkgoHelper(); fetched(ctx, node)(); return node.Spec.Taints }
	}
	notes := func(ctx context.Context, in, reason string) func() []string {
		return func() []string {
			GinkgoHelper()
			list := &eventsv1.EventList{}
			Expect(plane.Client.List(ctx, list, client.InNamespace(in))).To(Succeed())
			var out []string
			for _, event := range list.Items {
				if event.Reason == reason {
					out = append(out, event.Note)
				}
			}
			return out
		}
	}

	It("links by providerID, whichever of the two comes first", func(ctx SpecContext) {
		startManager()
		node, late := builder.Node(), builder.Node()
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID))
		lateMachine := newMachine(builder.WithProviderID(late.Spec.ProviderID))
		create(ctx, machine, node, late, lateMachine)
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
		Eventually(nodeRef(ctx, lateMachine)).Should(referTo(late))
		Expect(machine.Status.LastUpdated.Time).To(BeTemporally("~", time.Now(), 10*time.Second))
		Eventually(annotations(ctx, node)).Should(HaveKeyWithValue(machineAnnotation, namespace+"/"+machine.Name))

		By("keeping the reference when the Node goes")
		Expect(plane.Client.Delete(ctx, node)).To(Succeed())
		Consistently(nodeRef(ctx, machine)).Should(referTo(node))
	})

	It("links by the first InternalIP when the providerIDs do not disagree", func(ctx SpecContext) {
		startManager()
		bare := builder.Node(builder.WithNodeProviderID(""), builder.WithNodeInternalIPs("10.0.0.1", "192.168.0.1"))
		strange := builder.Node(builder.WithNodeInternalIPs("10.0.0.2"))
		byIP := newMachine(builder.WithInternalIPs("172.16.0.1", "10.0.0.1"), builder.WithProviderID("test:///a"))
		disagreeing := newMachine(builder.WithInternalIPs("10.0.0.2"), builder.WithProviderID("test:///b"))
		second := newMachine(builder.WithInternalIPs("192.168.0.1"))
		create(ctx, bare, strange, byIP, disagreeing, second)
		Eventually(nodeRef(ctx, byIP)).Should(referTo(bare))
		Consistently(nodeRef(ctx, disagreeing)).Should(BeNil())
		Consistently(nodeRef(ctx, second)).Should(BeNil())
	})

	It("links by the first InternalIP where the distribution's providerID names no instance", func(ctx SpecContext) {
		startManager()
		for n, scheme := range []string{"k3s://", "rke2://"} {
			ip := fmt.Sprintf("10.0.3.%d", n+1)
			node := builder.Node(builder.WithNodeInternalIPs(ip))
			node.Spec.ProviderID = scheme + node.Name
			machine := newMachine(builder.WithInternalIPs(ip), builder.WithProviderID("test:///"+node.Name+"-instance"))
			create(ctx, machine, node)
			Eventually(nodeRef(ctx, machine)).Should(referTo(node))
		}
	})

	It("links once the Machine learns its address", func(ctx SpecContext) {
		startManager()
		node := builder.Node()
		machine := newMachine()
		create(ctx, node, machine)
		Consistently(nodeRef(ctx, machine)).Should(BeNil())
		machine.Status.Addresses = node.Status.Addresses
		Expect(plane.Client.Status().Update(ctx, machine)).To(Succeed())
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
	})

	It("asks for an address that the Machine lacks, and links once it is known", func(ctx SpecContext) {
		const requested = "machine-iac.io/check-drift"
		startManager()
		node := builder.Node(builder.WithNodeInternalIPs("10.0.4.1"))
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID),
			builder.WithAnnotations(map[string]string{"machine-iac.io/instance": "x"}), func(m *machinev1beta1.Machine) {
				m.Spec.Labels = map[string]string{"tier": "gold"}
				m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "named"}}
			})
		fresh := builder.Node(builder.WithNodeInternalIPs("10.0.4.9"))
		unpublished := newMachine(builder.WithProviderID(fresh.Spec.ProviderID),
			builder.WithAnnotations(map[string]string{"machine-iac.io/instance": "x"}))
		create(ctx, machine, node, unpublished, fresh)
		request := func() string { return fetched(ctx, machine)().GetAnnotations()[requested] }
		Eventually(request).Should(HavePrefix("10.0.4.1 "))
		Eventually(labels(ctx, node)).Should(HaveKeyWithValue("tier", "gold"))
		Consistently(nodeRef(ctx, machine)).Should(BeNil())
		Eventually(nodeRef(ctx, unpublished)).Should(referTo(fresh))
		Expect(unpublished.Annotations).NotTo(HaveKey(requested))
		machine.Status.Addresses = node.Status.Addresses
		Expect(plane.Client.Status().Update(ctx, machine)).To(Succeed())
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))

		By("asking no more than every five minutes, whatever the kubelet writes")
		asked := request()
		for n := range 3 {
			builder.WithNodeInternalIPs(fmt.Sprintf("10.0.4.%d", n+2))(node)
			Expect(plane.Client.Status().Update(ctx, node)).To(Succeed())
		}
		Consistently(request).Should(Equal(asked))
	})

	It("asks for no address that is none", func(ctx SpecContext) {
		startManager()
		node := builder.Node(builder.WithNodeInternalIPs("10.0.7.1", "no address", strings.Repeat("1", 1<<10)))
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID), builder.WithInternalIPs("10.0.7.1"),
			builder.WithAnnotations(map[string]string{"machine-iac.io/instance": "x"}))
		create(ctx, machine, node)
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
		Expect(fetched(ctx, machine)().GetAnnotations()).NotTo(HaveKey("machine-iac.io/check-drift"))
	})

	It("asks for the second address of a Node, and does not wait for it", func(ctx SpecContext) {
		startManager()
		node := builder.Node(builder.WithNodeInternalIPs("10.0.6.1", "fd00::1"))
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID), builder.WithInternalIPs("10.0.6.1"),
			builder.WithAnnotations(map[string]string{"machine-iac.io/instance": "x"}))
		create(ctx, machine, node)
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
		Expect(fetched(ctx, machine)().GetAnnotations()).To(
			HaveKeyWithValue("machine-iac.io/check-drift", HavePrefix("fd00::1 ")))
	})

	It("links a Machine that gets no address after two minutes", func(ctx SpecContext) {
		startManager()
		node := builder.Node(builder.WithNodeInternalIPs("10.0.5.1"))
		asked := "10.0.5.1 " + time.Now().Add(-2*time.Minute).UTC().Format(time.RFC3339)
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID), builder.WithAnnotations(map[string]string{
			"machine-iac.io/instance": "x", "machine-iac.io/address-checked": asked,
		}), func(m *machinev1beta1.Machine) {
			m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "named"}}
		})
		create(ctx, machine, node)
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
	})

	It("links a Node made again under its name, even across a restart", func(ctx SpecContext) {
		stop := startManager()
		node := builder.Node()
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID))
		again := node.DeepCopy()
		create(ctx, machine, node)
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
		stop()

		Expect(plane.Client.Delete(ctx, node)).To(Succeed())
		create(ctx, again)
		Expect(again.UID).NotTo(Equal(node.UID))
		startManager()
		Eventually(nodeRef(ctx, machine)).Should(referTo(again))
		Eventually(annotations(ctx, again)).Should(HaveKey(machineAnnotation))
	})

	It("links a Node made again under its name while the controller runs", func(ctx SpecContext) {
		startManager()
		node := builder.Node()
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID), func(m *machinev1beta1.Machine) {
			m.Spec.Labels = map[string]string{"tier": "gold"}
		})
		again := node.DeepCopy()
		create(ctx, machine, node)
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
		Expect(plane.Client.Delete(ctx, node)).To(Succeed())
		create(ctx, again)
		Eventually(nodeRef(ctx, machine)).Should(referTo(again))
		Eventually(labels(ctx, again)).Should(HaveKeyWithValue("tier", "gold"))
	})

	It("links a Node that joins a Machine which is being deleted, but brings it no more changes", func(ctx SpecContext) {
		startManager()
		node := builder.Node()
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID), builder.WithFinalizer(), func(m *machinev1beta1.Machine) {
			m.Spec.Labels = map[string]string{"tier": "gold"}
		})
		create(ctx, machine)
		DeferCleanup(letGo, machine)
		Expect(plane.Client.Delete(ctx, machine)).To(Succeed())
		create(ctx, node)
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
		Eventually(labels(ctx, node)).Should(HaveKeyWithValue("tier", "gold"))
		machine.Spec.Labels = map[string]string{"tier": "silver"}
		Expect(plane.Client.Update(ctx, machine)).To(Succeed())
		Consistently(labels(ctx, node)).Should(HaveKeyWithValue("tier", "gold"))
	})

	It("links the Machine that stays when its rival begins to go", func(ctx SpecContext) {
		startManager()
		node := builder.Node(builder.WithNodeProviderID(""), builder.WithNodeInternalIPs("10.2.0.1"))
		goes := newMachine(builder.WithInternalIPs("10.2.0.1"), builder.WithFinalizer())
		stays := newMachine(builder.WithInternalIPs("10.2.0.1"))
		create(ctx, goes, stays, node)
		DeferCleanup(letGo, goes)
		Eventually(notes(ctx, "default", "AmbiguousMatch")).Should(ContainElement(ContainSubstring(goes.Name)))
		Expect(nodeRef(ctx, stays)()).To(BeNil())
		Expect(plane.Client.Delete(ctx, goes)).To(Succeed())
		Eventually(nodeRef(ctx, stays)).Should(referTo(node))
		Expect(nodeRef(ctx, goes)()).To(BeNil())
	})

	It("links nothing while two Machines or two Nodes would do, and reports it", func(ctx SpecContext) {
		startManager()
		node := builder.Node(builder.WithNodeProviderID(""), builder.WithNodeInternalIPs("10.1.0.1"))
		one, two := newMachine(builder.WithInternalIPs("10.1.0.1")), newMachine(builder.WithInternalIPs("10.1.0.1"))
		create(ctx, one, two, node)
		Eventually(notes(ctx, "default", "AmbiguousMatch")).Should(ContainElement(And(
			ContainSubstring(node.Name), ContainSubstring("2 Machines"), ContainSubstring(one.Name), ContainSubstring(two.Name))))
		Consistently(nodeRef(ctx, one)).Should(BeNil())
		Expect(nodeRef(ctx, two)()).To(BeNil())

		By("linking the one that stays")
		Expect(plane.Client.Delete(ctx, two)).To(Succeed())
		Eventually(nodeRef(ctx, one)).Should(referTo(node))

		By("refusing a second Node of the Machine")
		rival := builder.Node(builder.WithNodeProviderID(""), builder.WithNodeInternalIPs("10.1.0.1"))
		create(ctx, rival)
		Eventually(notes(ctx, "default", "AmbiguousMatch")).Should(ContainElement(And(
			ContainSubstring("2 Nodes of Machine "+namespace+"/"+one.Name), ContainSubstring(rival.Name))))
		Consistently(nodeRef(ctx, one)).Should(referTo(node))
	})

	It("labels the Node of an instance that may be taken away, also where the Machine says so after its Node has joined", func(ctx SpecContext) {
		const interruptible = "machine.openshift.io/interruptible-instance"
		startManager()
		node := builder.Node()
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID))
		create(ctx, machine, node)
		Eventually(annotations(ctx, node)).Should(HaveKey(machineAnnotation))
		Expect(node.Labels).NotTo(HaveKey(interruptible))

		fetched(ctx, machine)()
		before := machine.DeepCopy()
		machine.Spec.Labels = map[string]string{interruptible: ""}
		Expect(plane.Client.Patch(ctx, machine, client.MergeFrom(before))).To(Succeed())
		Eventually(labels(ctx, node)).Should(HaveKeyWithValue(interruptible, ""))
	})

	It("puts labels, annotations and taints on the Node, and takes off only what it put there", func(ctx SpecContext) {
		startManager()
		theirs := corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoSchedule}
		node := builder.Node(builder.WithTaints(theirs), func(n *corev1.Node) {
			n.Labels["zone"] = "z1"
			n.Annotations = map[string]string{"their": "note"}
		})
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID), func(m *machinev1beta1.Machine) {
			m.Spec.Labels = map[string]string{"node-role.kubernetes.io/web": "", "tier": "gold", "zone": "z1"}
			m.Spec.Annotations = map[string]string{"our": "note"}
			m.Spec.Taints = []corev1.Taint{{Key: "ours", Value: "x", Effect: corev1.TaintEffectNoExecute}}
		})
		create(ctx, machine, node)
		Eventually(labels(ctx, node)).Should(MatchKeys(IgnoreExtras, Keys{
			"node-role.kubernetes.io/web": BeEmpty(), "tier": Equal("gold"), "zone": Equal("z1"), "kubernetes.io/hostname": Equal(node.Name),
		}))
		Expect(node.Annotations).To(And(HaveKeyWithValue("our", "note"), HaveKeyWithValue("their", "note")))
		Expect(node.Spec.Taints).To(ContainElements(theirs, machine.Spec.Taints[0])) // and the API server's own for a new Node

		By("writing nothing more once all is as it should be")
		version := fetched(ctx, node)().GetResourceVersion()
		Consistently(func() string { return fetched(ctx, node)().GetResourceVersion() }).Should(Equal(version))

		By("putting back a label and a taint that someone took off")
		delete(node.Labels, "tier")
		node.Labels["late"] = "theirs"
		node.Spec.Taints = []corev1.Taint{theirs}
		Expect(plane.Client.Update(ctx, node)).To(Succeed())
		Eventually(labels(ctx, node)).Should(HaveKeyWithValue("tier", "gold"))
		Eventually(taints(ctx, node)).Should(HaveLen(2))

		By("taking off what the Machine no longer has, but not the taint and not what others put there, before or since")
		fetched(ctx, machine)()
		machine.Spec.Labels = map[string]string{"tier": "silver"}
		machine.Spec.Annotations, machine.Spec.Taints = nil, nil
		Expect(plane.Client.Update(ctx, machine)).To(Succeed())
		Eventually(labels(ctx, node)).Should(And(HaveKeyWithValue("tier", "silver"), Not(HaveKey("node-role.kubernetes.io/web"))))
		Expect(node.Labels).To(And(HaveKeyWithValue("zone", "z1"), HaveKeyWithValue("late", "theirs")))
		Expect(node.Annotations).To(And(Not(HaveKey("our")), HaveKeyWithValue("their", "note"), HaveKey(machineAnnotation)))
		Expect(node.Spec.Taints).To(HaveLen(2))
	})

	It("gives a label and an annotation back the values that they had before the Machine's", func(ctx SpecContext) {
		startManager()
		node := builder.Node(func(n *corev1.Node) {
			n.Labels["tier"] = "bronze"
			n.Annotations = map[string]string{"owner": "them"}
		})
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID), func(m *machinev1beta1.Machine) {
			m.Spec.Labels = map[string]string{"tier": "gold", "new": "one"}
			m.Spec.Annotations = map[string]string{"owner": "us"}
		})
		create(ctx, machine, node)
		Eventually(labels(ctx, node)).Should(And(HaveKeyWithValue("tier", "gold"), HaveKey("new")))
		Expect(node.Annotations).To(HaveKeyWithValue("owner", "us"))

		By("keeping them in mind while the Machine's change")
		fetched(ctx, machine)()
		machine.Spec.Labels["tier"] = "silver"
		Expect(plane.Client.Update(ctx, machine)).To(Succeed())
		Eventually(labels(ctx, node)).Should(HaveKeyWithValue("tier", "silver"))

		fetched(ctx, machine)()
		machine.Spec.Labels, machine.Spec.Annotations = nil, nil
		Expect(plane.Client.Update(ctx, machine)).To(Succeed())
		Eventually(labels(ctx, node)).Should(And(HaveKeyWithValue("tier", "bronze"), Not(HaveKey("new"))))
		Expect(node.Annotations).To(And(HaveKeyWithValue("owner", "them"), Not(HaveKey("machine-iac.io/nodelink-applied"))))
	})

	It("reports a label that Kubernetes does not allow, and puts on the rest", func(ctx SpecContext) {
		startManager()
		node := builder.Node()
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID), func(m *machinev1beta1.Machine) {
			m.Spec.Labels = map[string]string{"tier": "gold", "team": "not valid!"}
		})
		create(ctx, machine, node)
		Eventually(notes(ctx, namespace, "InvalidNodeLabels")).Should(ContainElement(ContainSubstring("team=not valid!")))
		Eventually(labels(ctx, node)).Should(HaveKeyWithValue("tier", "gold"))
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
	})

	It("reports when the API server refuses the Node", func(ctx SpecContext) {
		startManager()
		node := builder.Node()
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID), func(m *machinev1beta1.Machine) {
			m.Spec.Taints = []corev1.Taint{{Key: "x", Effect: "Whatever"}}
		})
		create(ctx, machine, node)
		Eventually(notes(ctx, namespace, "FailedUpdateNode")).Should(ContainElement(ContainSubstring("Whatever")))
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
	})

	It("writes nothing about a Node that is being deleted", func(ctx SpecContext) {
		node := builder.Node(func(n *corev1.Node) { n.Finalizers = []string{"example.com/hold"} })
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID))
		create(ctx, node, machine)
		Expect(plane.Client.Delete(ctx, node)).To(Succeed())
		startManager()
		Consistently(nodeRef(ctx, machine)).Should(BeNil())
		Expect(annotations(ctx, node)()).NotTo(HaveKey(machineAnnotation))
		node.Finalizers = nil
		Expect(plane.Client.Update(ctx, node)).To(Succeed())
	})

	It("leaves the Machine alone when its Node turns Ready or NotReady", func(ctx SpecContext) {
		startManager()
		node := builder.Node()
		machine := newMachine(builder.WithProviderID(node.Spec.ProviderID))
		create(ctx, machine, node)
		Eventually(nodeRef(ctx, machine)).Should(referTo(node))
		Eventually(annotations(ctx, node)).Should(HaveKey(machineAnnotation))
		version := fetched(ctx, machine)().GetResourceVersion()
		builder.WithReady(corev1.ConditionFalse, time.Now())(node)
		Expect(plane.Client.Status().Update(ctx, node)).To(Succeed())
		Consistently(func() string { return fetched(ctx, machine)().GetResourceVersion() }).Should(Equal(version))
	})
})

// letGo takes the finalizers off an object that is being deleted.
func letGo(ctx SpecContext, object client.Object) {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	Expect(plane.Client.Patch(ctx, object, patch)).To(Succeed())
}
