//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

const (
	excludeAnnotation = "machine.openshift.io/exclude-node-draining"
	timeoutAnnotation = "machine-iac.io/drain-timeout"
	// aWhile is long enough to observe something that must not happen.
	aWhile = 3 * time.Second
)

func aDrain() {
	var seen *timeline

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, 3)
		seen = w.timeline(ctx)
	})

	aDrainUnderABudget(func() *timeline { return seen })
	manyDrains(func() *timeline { return seen })
	aDrainThatIsHeld(func() *timeline { return seen })
	aDrainThatIsCutShort(func() *timeline { return seen })
}

// aDrainUnderABudget drains a Machine of the MachineSet while a Deployment is spread over its Nodes.
func aDrainUnderABudget(seen func() *timeline) {
	const app = "spread"
	var machine *machinev1beta1.Machine
	var pod string

	It("stops at a PodDisruptionBudget: the Machine names the Pod, and nothing is removed", func(ctx SpecContext) {
		w.visited(ctx, map[string]int{app: 3}, budget(app, 3), spread(app, 3))
		pods, err := w.pods(ctx, app)
		Expect(err).NotTo(HaveOccurred())
		machine, pod = w.get(ctx, pods[0].Spec.NodeName), pods[0].Name

		w.kubectl(ctx, "delete", "machine", machine.Name, "--wait=false")
		w.drainFails(ctx, machine.Name, pod)
		Expect(w.node(ctx, machine.Name).Spec.Unschedulable).To(BeTrue(), "the Node is not cordoned")
		seen().hasNone(ctx, leaves(pod), drained(machine.Name), destroyed(machine.Name), nodeGone(machine.Name))
		w.expectEvent(ctx, machine, "DrainProceeds", "")
		w.expectEvent(ctx, machine, "DrainRequeued", pod)
	})

	It("goes on when the budget allows: the Pod leaves, the instance is destroyed, the Machine goes, in this "+
		"order", func(ctx SpecContext) {
		w.kubectl(ctx, "patch", "poddisruptionbudget", app, "--namespace", workloads, "--type=merge",
			"--patch", `{"spec": {"minAvailable": 2}}`)
		seen().happens(ctx, cordoned(machine.Name), leaves(pod), podGone(pod),
			drained(machine.Name), destroyed(machine.Name),
			nodeGone(machine.Name), machineGone(machine.Name))
		w.expectEvent(ctx, machine, "DrainSucceeded", "")
		w.settles(ctx, 3)
		until(ctx, patience, "all Pods run elsewhere", func(ctx context.Context) error {
			pods, err := w.pods(ctx, app)
			if err == nil && len(pods) != 3 {
				err = fmt.Errorf("%d/3 Pods are ready", len(pods))
			}
			for _, p := range pods {
				Expect(p.Spec.NodeName).NotTo(Equal(machine.Name))
			}
			return err
		})
		w.leave(ctx, app)
	})
}

func manyDrains(seen func() *timeline) {
	const stuck = "stuck"
	free := []string{"free-a", "free-b", "free-c"}

	It("of one Node that is blocked holds up no other", func(ctx SpecContext) {
		w.housed(ctx, append(free, stuck)...)
		w.visited(ctx, map[string]int{stuck: 1}, budget(stuck, 1))
		w.kubectl(ctx, "delete", "machine", stuck, "--wait=false")
		w.drainFails(ctx, stuck, stuck)
		w.removed(ctx, free...)
		for _, name := range free {
			seen().happens(ctx, leaves(name), podGone(name), drained(name), destroyed(name),
				nodeGone(name), machineGone(name))
		}
		Expect(seen().among(leaves(stuck), drained(stuck), destroyed(stuck), nodeGone(stuck))).To(BeEmpty())
	})

	It("goes on when the manager was killed in the middle of it", func(ctx SpecContext) {
		w.kubectl(ctx, "delete", "poddisruptionbudget", stuck, "--namespace", workloads)
		w.killAt(ctx, func() bool { return seen().has(leaves(stuck)) })
		Expect(seen().has(drained(stuck))).To(BeFalse(), "the kill came too late")
		w.removed(ctx, stuck)
		seen().happens(ctx, leaves(stuck), podGone(stuck), drained(stuck), destroyed(stuck),
			nodeGone(stuck), machineGone(stuck))
	})
}

func aDrainThatIsHeld(seen func() *timeline) {
	const name = "hooked"
	hook := func(name string) []machinev1beta1.LifecycleHook {
		return []machinev1beta1.LifecycleHook{{Name: name, Owner: "the-end-to-end-tests"}}
	}
	unhook := func(ctx context.Context, when string) {
		w.kubectl(ctx, "patch", "machine", name, "--type=json",
			"--patch", `[{"op": "remove", "path": "/spec/lifecycleHooks/`+when+`"}]`)
	}

	It("waits while there is a preDrain hook", func(ctx SpecContext) {
		machine := w.machine(name)
		machine.Spec.LifecycleHooks = machinev1beta1.LifecycleHooks{
			PreDrain: hook("example.com/Backup"), PreTerminate: hook("example.com/Audit"),
		}
		w.create(ctx, machine)
		w.housed(ctx, name)
		w.kubectl(ctx, "delete", "machine", name, "--wait=false")
		w.expectEvent(ctx, machine, "DrainBlocked", "Backup")
		w.holds(ctx, name, machinev1beta1.MachineDrainable, "Backup")
		seen().hasNone(ctx, cordoned(name), leaves(name), drained(name), destroyed(name))
	})

	It("ends, and its Machine stays while there is a preTerminate hook", func(ctx SpecContext) {
		unhook(ctx, "preDrain")
		seen().happens(ctx, cordoned(name), leaves(name), podGone(name), drained(name))
		w.holds(ctx, name, machinev1beta1.MachineTerminable, "Audit")
		seen().hasNone(ctx, destroyed(name), nodeGone(name))
		unhook(ctx, "preTerminate")
		seen().happens(ctx, drained(name), destroyed(name), nodeGone(name), machineGone(name))
	})
}

func aDrainThatIsCutShort(seen func() *timeline) {
	annotated := func(ctx context.Context, name, key, value string) *machinev1beta1.Machine {
		machine := w.machine(name)
		machine.Annotations = map[string]string{key: value}
		w.create(ctx, machine)
		w.housed(ctx, name)
		w.visited(ctx, map[string]int{name: 1}, budget(name, 1))
		DeferCleanup(func(ctx SpecContext) { w.leave(ctx, name) })
		w.removed(ctx, name)
		return machine
	}

	It("is left out where the Machine says so", func(ctx SpecContext) {
		const name = "skipped"
		machine := annotated(ctx, name, excludeAnnotation, "")
		w.expectEvent(ctx, machine, "DrainSkipped", excludeAnnotation)
		seen().happens(ctx, drained(name), destroyed(name), nodeGone(name), machineGone(name))
		Expect(seen().among(cordoned(name))).To(BeEmpty())
	})

	It("ends with the time that the Machine allows, and reports which Pod is left behind", func(ctx SpecContext) {
		const name = "hurried"
		machine := annotated(ctx, name, timeoutAnnotation, "5s")
		w.expectEvent(ctx, machine, "DrainTimedOut", workloads+"/"+name)
		seen().happens(ctx, cordoned(name), drained(name), destroyed(name), nodeGone(name), machineGone(name))
	})
}

// housed creates missing Machines, with a Pod of the same name on each Node.
func (w *world) housed(ctx context.Context, names ...string) {
	GinkgoHelper()
	seen, err := w.census(ctx)
	Expect(err).NotTo(HaveOccurred())
	there := map[string]bool{}
	for _, machine := range seen.machines {
		there[machine.Name] = true
	}
	for _, name := range names {
		if !there[name] {
			w.create(ctx, w.machine(name))
		}
	}
	ready := map[string]int{}
	for _, name := range names {
		w.runs(ctx, name)
		w.create(ctx, guest(name, name))
		ready[name] = 1
	}
	w.visited(ctx, ready)
}

// drainFails waits until a Machine reports that a Pod blocks its drain.
func (w *world) drainFails(ctx context.Context, name, pod string) {
	GinkgoHelper()
	until(ctx, patience, "Machine "+name+" names the Pod "+pod+
		" that blocks its drain", func(ctx context.Context) error {
		machine := w.get(ctx, name)
		got := condition(machine, machinev1beta1.MachineDrained)
		if got.Status != corev1.ConditionFalse || got.Reason != machinev1beta1.MachineDrainError ||
			!strings.Contains(got.Message, workloads+"/"+pod) {
			return fmt.Errorf("the condition Drained of %s is %q, %s: %s", name, got.Status, got.Reason, got.Message)
		}
		return phaseIs(machine, machinev1beta1.PhaseDeleting)
	})
}

// holds waits until a Machine's condition names the hook that holds it.
func (w *world) holds(ctx context.Context, name string, kind machinev1beta1.ConditionType, hook string) {
	GinkgoHelper()
	until(ctx, patience, fmt.Sprintf("%s of Machine %s names the hook", kind, name), func(ctx context.Context) error {
		got := condition(w.get(ctx, name), kind)
		if got.Status != corev1.ConditionFalse || got.Reason != machinev1beta1.MachineHookPresent ||
			!strings.Contains(got.Message, hook) {
			return fmt.Errorf("the condition %s of %s is %s, %s: %s", kind, name, got.Status, got.Reason, got.Message)
		}
		return nil
	})
}
