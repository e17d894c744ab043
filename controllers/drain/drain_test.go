package drain_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	"github.com/onsi/gomega/types"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/drain"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

// world is what one test works on: a namespace for Machines and pods, and what acts as the
// kubelets.
type world struct {
	namespace string
	mu        sync.Mutex
	silent    map[string]bool
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w := &world{namespace: suite.Namespace(ctx, plane), silent: map[string]bool{}}
	living, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.serve(living)
	}()
	DeferCleanup(func(ctx SpecContext) {
		stop()
		<-ended
		Expect(plane.Client.DeleteAllOf(ctx, &corev1.Node{})).To(Succeed())
	})
	return w
}

// serve removes pods that were evicted, as kubelets do, until ctx ends.
func (w *world) serve(ctx context.Context) {
	for ticker := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-ticker.C {
		pods := &corev1.PodList{}
		if err := plane.Client.List(ctx, pods, client.InNamespace(w.namespace)); err != nil {
			continue
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp != nil && !w.isSilent(pod.Spec.NodeName) {
				_ = plane.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)) // the next round tries again
			}
		}
	}
}

func (w *world) isSilent(node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silent[node]
}

// silence takes the kubelet of a Node away.
func (w *world) silence(node *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent[node.Name] = true
}

// node makes a Node.
func (w *world) node(ctx context.Context, mods ...func(*corev1.Node)) *corev1.Node {
	GinkgoHelper()
	node := builder.Node(mods...)
	create(ctx, node)
	return node
}

// pod makes a pod on a Node.
func (w *world) pod(ctx context.Context, node *corev1.Node, mods ...func(*corev1.Pod)) *corev1.Pod {
	GinkgoHelper()
	pod := builder.In(w.namespace, builder.Pod(append(mods, builder.OnNode(node))...))
	create(ctx, pod)
	return pod
}

// guarded makes a pod on a Node with a budget that lets nothing go.
func (w *world) guarded(ctx context.Context, node *corev1.Node) (*corev1.Pod, *policyv1.PodDisruptionBudget) {
	GinkgoHelper()
	pod := w.pod(ctx, node)
	budget := builder.In(w.namespace, builder.PodDisruptionBudget(pod.Labels["app"], 0))
	create(ctx, budget)
	return pod, budget
}

// deleting makes a Machine of a Node, nil for none, that is being deleted, as the machine
// controller leaves it for the drain.
func (w *world) deleting(ctx context.Context, node *corev1.Node, mods ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
	GinkgoHelper()
	if node != nil {
		mods = append([]func(*machinev1beta1.Machine){builder.WithNodeRef(node), builder.WithProviderID(node.Spec.ProviderID)}, mods...)
	}
	usual := []func(*machinev1beta1.Machine){builder.WithFinalizer(), builder.WithPhase("Running"), underMachineAPI}
	machine := builder.In(w.namespace, builder.Machine(append(usual, mods...)...))
	create(ctx, machine)
	Expect(plane.Client.Delete(ctx, machine)).To(Succeed())
	setPhase(ctx, machine, "Deleting")
	return machine
}

// underMachineAPI makes the Machine one of this API, on a cluster that knows another.
func underMachineAPI(m *machinev1beta1.Machine) {
	m.Status.AuthoritativeAPI = machinev1beta1.MachineAuthorityMachineAPI
}

func setPhase(ctx context.Context, machine *machinev1beta1.Machine, phase string) {
	GinkgoHelper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))
	Expect(plane.Client.Status().Patch(ctx, machine, patch)).To(Succeed())
}

func annotate(ctx context.Context, machine *machinev1beta1.Machine, key, value string) {
	GinkgoHelper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value))
	Expect(plane.Client.Patch(ctx, machine, patch)).To(Succeed())
}

// allow lets a budget's pod go.
func allow(ctx context.Context, budget *policyv1.PodDisruptionBudget) {
	GinkgoHelper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"disruptionsAllowed":1}}`))
	Expect(plane.Client.Status().Patch(ctx, budget, patch)).To(Succeed())
}

// drainedOf returns the Machine's condition Drained; the zero condition when it has none.
func drainedOf(ctx context.Context, machine *machinev1beta1.Machine) func() machinev1beta1.Condition {
	return func() machinev1beta1.Condition {
		GinkgoHelper()
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
		if found := machineapi.FindCondition(machine.Status.Conditions, machinev1beta1.MachineDrained); found != nil {
			return *found
		}
		return machinev1beta1.Condition{}
	}
}

func condition(status corev1.ConditionStatus, severity machinev1beta1.ConditionSeverity, reason string, message types.GomegaMatcher) types.GomegaMatcher {
	return MatchFields(IgnoreExtras, Fields{
		"Status": Equal(status), "Severity": Equal(severity), "Reason": Equal(reason), "Message": message,
	})
}

func succeeded() types.GomegaMatcher {
	return condition("True", "", "", Equal("Drain finished successfully"))
}

func failing(message types.GomegaMatcher) types.GomegaMatcher {
	return condition("False", "Warning", "DrainError", message)
}

func cordoned(ctx context.Context, node *corev1.Node) func() bool {
	return func() bool {
		GinkgoHelper()
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(node), node)).To(Succeed())
		return node.Spec.Unschedulable
	}
}

func gone(ctx context.Context, object client.Object) func() bool {
	return func() bool {
		return apierrors.IsNotFound(plane.Client.Get(ctx, client.ObjectKeyFromObject(object), object))
	}
}

// events returns the events about a Machine as "Type Reason", or with their note.
func events(ctx context.Context, machine *machinev1beta1.Machine) func() []string {
	return func() []string {
		GinkgoHelper()
		list := &eventsv1.EventList{}
		Expect(plane.Client.List(ctx, list, client.InNamespace(machine.Namespace))).To(Succeed())
		var out []string
		for _, event := range list.Items {
			if event.Regarding.Name == machine.Name && event.Action == "Drain" {
				out = append(out, fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Note))
			}
		}
		return out
	}
}

func HaveEvent(start string) types.GomegaMatcher { return ContainElement(HavePrefix(start)) }

func countOf(start string, all []string) int {
	count := 0
	for _, text := range all {
		if strings.HasPrefix(text, start) {
			count++
		}
	}
	return count
}

var _ = Describe("Drain", func() {
	var w *world
	BeforeEach(func(ctx SpecContext) { w = newWorld(ctx) })

	It("empties the Node of what may go, and leaves mirror pods and those of DaemonSets", func(ctx SpecContext) {
		startManager(w.namespace, func(o *drain.Options) { o.AttemptTimeout = 15 * time.Second })
		node, elsewhere := w.node(ctx), w.node(ctx)
		set := builder.In(w.namespace, builder.DaemonSet())
		create(ctx, set)
		lonely := w.pod(ctx, node)
		withData := w.pod(ctx, node, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})
		daemon := w.pod(ctx, node, builder.OfDaemonSet(set))
		mirror := w.pod(ctx, node, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })
		other := w.pod(ctx, elsewhere)

		machine := w.deleting(ctx, node)
		Eventually(drainedOf(ctx, machine)).Should(succeeded())
		Expect(gone(ctx, lonely)()).To(BeTrue())
		Expect(gone(ctx, withData)()).To(BeTrue())
		for _, stays := range []*corev1.Pod{daemon, mirror, other} {
			Expect(gone(ctx, stays)()).To(BeFalse())
			Expect(stays.DeletionTimestamp).To(BeNil())
		}
		Expect(cordoned(ctx, node)()).To(BeTrue())
		Expect(cordoned(ctx, elsewhere)()).To(BeFalse())
		Eventually(events(ctx, machine)).Should(ConsistOf(
			HavePrefix("Normal DrainProceeds: "),
			Equal(fmt.Sprintf("Normal Deleted: Node %q drained", node.Name)),
			HavePrefix("Normal DrainSucceeded: ")))

		By("not draining it a second time")
		late := w.pod(ctx, node)
		annotate(ctx, machine, "anything", "else")
		annotate(ctx, machine, drain.TimeoutAnnotation, "1h")
		Consistently(func() *corev1.Pod {
			Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(late), late)).To(Succeed())
			return late
		}).Should(HaveField("DeletionTimestamp", BeNil()))
	})

	It("says which pod a budget holds, and ends once the budget lets go", func(ctx SpecContext) {
		startManager(w.namespace, func(o *drain.Options) { o.AttemptTimeout = 2 * time.Second })
		node := w.node(ctx)
		free := w.pod(ctx, node)
		pod, budget := w.guarded(ctx, node)
		machine := w.deleting(ctx, node)
		Eventually(drainedOf(ctx, machine)).Should(failing(And(
			ContainSubstring("Node "+node.Name), ContainSubstring(w.namespace+"/"+pod.Name), ContainSubstring(budget.Name),
			Not(ContainSubstring(free.Name)))))
		Expect(gone(ctx, free)()).To(BeTrue())
		first := drainedOf(ctx, machine)()
		// They are sent side by side, and may come in any order.
		Eventually(events(ctx, machine)).Should(And(
			HaveEvent("Normal DrainRequeued: Node drain requeued: "+first.Message), HaveEvent("Normal DrainProceeds")))
		sent := events(ctx, machine)()
		Consistently(drainedOf(ctx, machine)).WithTimeout(3*time.Second).Should(Equal(first), "the same holds it in the next pass")
		Expect(events(ctx, machine)()).To(ConsistOf(sent))
		Expect(countOf("Normal DrainProceeds", sent)).To(Equal(1))

		allow(ctx, budget)
		Eventually(drainedOf(ctx, machine)).Should(succeeded())
		Expect(gone(ctx, pod)()).To(BeTrue())
		Eventually(events(ctx, machine)).Should(HaveEvent("Normal DrainSucceeded"))
	})

	It("says what holds a pod that was evicted and does not end", func(ctx SpecContext) {
		startManager(w.namespace)
		node := w.node(ctx)
		pod := w.pod(ctx, node, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} })
		machine := w.deleting(ctx, node)
		Eventually(drainedOf(ctx, machine)).Should(failing(And(ContainSubstring(pod.Name), ContainSubstring("example.com/hold"))))
		Expect(plane.Client.Patch(ctx, pod, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Eventually(drainedOf(ctx, machine)).Should(succeeded())
	})

	DescribeTable("waits for preDrain hooks, also where nothing would be drained", func(ctx SpecContext, withNode, excluded bool, want string) {
		startManager(w.namespace)
		var node *corev1.Node
		var pod *corev1.Pod
		if withNode {
			node = w.node(ctx)
			pod = w.pod(ctx, node)
		}
		machine := w.deleting(ctx, node, builder.WithPreDrainHook("Hold", "somebody"), func(m *machinev1beta1.Machine) {
			if excluded {
				m.Annotations = map[string]string{"machine.openshift.io/exclude-node-draining": "false"}
			}
		})
		Eventually(events(ctx, machine)).Should(HaveEvent("Normal DrainBlocked"))
		Consistently(drainedOf(ctx, machine)).Should(BeZero())
		if withNode {
			Expect(cordoned(ctx, node)()).To(BeFalse())
		}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"lifecycleHooks":null}}`))
		Expect(plane.Client.Patch(ctx, machine, patch)).To(Succeed())
		Eventually(drainedOf(ctx, machine)).Should(condition("True", "", "", Equal(want)))
		if excluded {
			Expect(gone(ctx, pod)()).To(BeFalse())
		}
	},
		Entry("a Node to drain", true, false, "Drain finished successfully"),
		Entry("a Machine that does not want it", true, true, "Node drain skipped"),
		Entry("a Machine without a Node", false, false, "Node drain skipped"),
	)

	It("skips Machines without a Node and those that are excluded, whatever the annotation's value", func(ctx SpecContext) {
		startManager(w.namespace)
		node := w.node(ctx)
		pod := w.pod(ctx, node)
		excluded := w.deleting(ctx, node, builder.WithAnnotations(map[string]string{"machine.openshift.io/exclude-node-draining": ""}))
		bare := w.deleting(ctx, nil)
		for _, machine := range []*machinev1beta1.Machine{excluded, bare} {
			Eventually(drainedOf(ctx, machine)).Should(condition("True", "", "", Equal("Node drain skipped")))
			Eventually(events(ctx, machine)).Should(ConsistOf(HavePrefix("Normal DrainSkipped: ")))
		}
		Expect(gone(ctx, pod)()).To(BeFalse())
		Expect(cordoned(ctx, node)()).To(BeFalse())
	})

	It("evicts a pod that tolerates the cordon once, although another always takes its place", func(ctx SpecContext) {
		startManager(w.namespace)
		node := w.node(ctx)
		w.silence(node)
		tolerant := func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}
		w.pod(ctx, node, tolerant)
		var made atomic.Int32
		living, stop := context.WithCancel(ctx)
		DeferCleanup(stop)
		go func() { // replaces pods at once, and lets them end after more than an attempt
			evicted := map[string]time.Time{}
			for ticker := time.NewTicker(50 * time.Millisecond); living.Err() == nil; <-ticker.C {
				pods := &corev1.PodList{}
				_ = plane.Client.List(living, pods, client.InNamespace(w.namespace))
				for i := range pods.Items {
					pod := &pods.Items[i]
					at, replaced := evicted[pod.Name]
					switch {
					case pod.DeletionTimestamp == nil:
					case !replaced:
						evicted[pod.Name] = time.Now()
						made.Add(1)
						_ = plane.Client.Create(living, builder.In(w.namespace, builder.Pod(tolerant, builder.OnNode(node))))
					case time.Since(at) > 1500*time.Millisecond:
						_ = plane.Client.Delete(living, pod, client.GracePeriodSeconds(0))
					}
				}
			}
		}()
		machine := w.deleting(ctx, node)
		Eventually(drainedOf(ctx, machine)).Should(succeeded())
		Expect(made.Load()).To(BeNumerically("<=", 2), "a pod of the same second as the first goes too")
	})

	It("takes a Node that is gone for drained, and leaves one alone that another has made under its name", func(ctx SpecContext) {
		startManager(w.namespace)
		node := w.node(ctx)
		pod := w.pod(ctx, node)
		vanished := w.deleting(ctx, builder.Node())
		stale := w.deleting(ctx, node, func(m *machinev1beta1.Machine) { m.Status.NodeRef.UID, m.Spec.ProviderID = "another", nil })
		Eventually(drainedOf(ctx, vanished)).Should(succeeded())
		Eventually(drainedOf(ctx, stale)).Should(succeeded())
		Expect(cordoned(ctx, node)()).To(BeFalse())
		Expect(gone(ctx, pod)()).To(BeFalse())
	})

	It("leaves Machines alone that are not deleting, not its own, or under another API", func(ctx SpecContext) {
		startManager(w.namespace)
		node := w.node(ctx)
		running := builder.In(w.namespace, builder.Machine(builder.WithFinalizer(), underMachineAPI, builder.WithNodeRef(node), builder.WithPhase("Deleting")))
		create(ctx, running)
		early := builder.In(w.namespace, builder.Machine(builder.WithFinalizer(), underMachineAPI, builder.WithNodeRef(node), builder.WithPhase("Running")))
		create(ctx, early)
		Expect(plane.Client.Delete(ctx, early)).To(Succeed())
		foreign := w.deleting(ctx, node, func(m *machinev1beta1.Machine) { m.Finalizers = []string{"example.com/other"} })
		migrated := w.deleting(ctx, node, func(m *machinev1beta1.Machine) {
			m.Spec.AuthoritativeAPI, m.Status.AuthoritativeAPI = "ClusterAPI", "ClusterAPI"
		})
		for _, machine := range []*machinev1beta1.Machine{running, early, foreign, migrated} {
			Consistently(drainedOf(ctx, machine)).Should(BeZero())
		}
		Expect(cordoned(ctx, node)()).To(BeFalse())

		By("beginning once the machine controller says Deleting")
		setPhase(ctx, early, "Deleting")
		Eventually(drainedOf(ctx, early)).Should(succeeded())
	})

	It("does not wait for pods of an unreachable Node to end, but for their budgets", func(ctx SpecContext) {
		startManager(w.namespace, func(o *drain.Options) { o.AttemptTimeout = 4 * time.Second })
		node := w.node(ctx, builder.WithReady(corev1.ConditionUnknown, time.Now()))
		w.silence(node)
		stateful := w.pod(ctx, node)
		guarded, budget := w.guarded(ctx, node)
		machine := w.deleting(ctx, node)
		Eventually(drainedOf(ctx, machine)).Should(failing(And(ContainSubstring(guarded.Name), Not(ContainSubstring(stateful.Name)))))
		allow(ctx, budget)
		Eventually(drainedOf(ctx, machine)).Should(succeeded())
		for _, pod := range []*corev1.Pod{stateful, guarded} {
			Expect(gone(ctx, pod)()).To(BeFalse())
			Expect(pod.DeletionGracePeriodSeconds).To(HaveValue(BeEquivalentTo(1)))
		}
	})

	It("cordons one control-plane Node at a time", func(ctx SpecContext) {
		nodes := []*corev1.Node{w.node(ctx, builder.WithNodeRole("control-plane")), w.node(ctx, builder.WithNodeRole("master"))}
		machines := map[*machinev1beta1.Machine]*corev1.Node{}
		budgets := map[*corev1.Node]*policyv1.PodDisruptionBudget{}
		for _, node := range nodes {
			_, budgets[node] = w.guarded(ctx, node)
			machines[w.deleting(ctx, node)] = node
		}
		startManager(w.namespace)
		waits := condition("False", "Info", "WaitingForControlPlane", ContainSubstring("one at a time"))
		var second *machinev1beta1.Machine
		Eventually(func() *machinev1beta1.Machine {
			for machine := range machines {
				if ok, _ := waits.Match(drainedOf(ctx, machine)()); ok {
					second = machine
				}
			}
			return second
		}).ShouldNot(BeNil())
		for machine, node := range machines {
			Eventually(cordoned(ctx, node)).Should(Equal(machine != second))
		}
		Consistently(cordoned(ctx, machines[second])).Should(BeFalse())
	})
})
