//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

const (
	linkAnnotation = "machine.openshift.io/machine"
)

// census is a snapshot of the operator's objects.
type census struct {
	machines []machinev1beta1.Machine
	nodes    []corev1.Node
	// states are the Machines' state Secrets.
	states []corev1.Secret
}

func (w *world) census(ctx context.Context) (*census, error) {
	var machines machinev1beta1.MachineList
	var nodes corev1.NodeList
	var states corev1.SecretList
	err := errors.Join(
		w.client.List(ctx, &machines, client.InNamespace(lab.Namespace)),
		w.client.List(ctx, &nodes),
		w.client.List(ctx, &states, client.InNamespace(lab.Namespace), client.HasLabels{observe.RoleLabel}),
	)
	workers := slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool { return observe.ControlPlane(&node) })
	return &census{machines: machines.Items, nodes: workers, states: states.Items}, err
}

// settled returns nil if there are count Machines, Nodes and states, all Machines are Running and linked, and no lock
// is held.
func (c *census) settled(count int) error {
	phases := map[string]int{}
	linked := 0
	for _, machine := range c.machines {
		phases[phaseOf(&machine)]++
		if machine.Status.NodeRef != nil {
			linked++
		}
	}
	running := phases[machinev1beta1.PhaseRunning]
	if running != count || len(c.machines) != count || len(c.nodes) != count || len(c.states) != count {
		return fmt.Errorf("%d/%d Running, %d Nodes, %d states; phases %v", running, count,
			len(c.nodes), len(c.states), phases)
	}
	if linked != count {
		return fmt.Errorf("all Running, but %d/%d have a nodeRef", linked, count)
	}
	for _, secret := range c.states {
		if lock := secret.Annotations[observe.LockAnnotation] +
			secret.Annotations[observe.IntentAnnotation]; lock != "" {
			return fmt.Errorf("all Running, but state %s of Machine %s is not settled: %s", secret.Name,
				secret.Annotations[observe.OwnerAnnotation], lock)
		}
	}
	return c.joined()
}

// joined returns nil if each Machine has its own Node and state, and all references to the Node agree.
func (c *census) joined() error {
	for i := range c.machines {
		machine := &c.machines[i]
		node := c.nodeOf(machine)
		if node == nil {
			return fmt.Errorf("the Node of Machine %s is not there", machine.Name)
		}
		if !ready(node) {
			return fmt.Errorf("the Node of Machine %s is not Ready", machine.Name)
		}
		if link := node.Annotations[linkAnnotation]; link != machine.Namespace+"/"+machine.Name {
			return fmt.Errorf("the Node of Machine %s is annotated with %q", machine.Name, link)
		}
		known, err := c.stateOf(machine)
		if err != nil {
			return err
		}
		if known.nodeUID() != string(node.UID) {
			return fmt.Errorf("the state of Machine %s knows Node %q, the Node is %q", machine.Name,
				known.nodeUID(), node.UID)
		}
	}
	return nil
}

// nodeOf returns the Node that a Machine refers to, or nil if it does not exist.
func (c *census) nodeOf(machine *machinev1beta1.Machine) *corev1.Node {
	ref := machine.Status.NodeRef
	for i := range c.nodes {
		if ref != nil && c.nodes[i].UID == ref.UID && c.nodes[i].Name == ref.Name {
			return &c.nodes[i]
		}
	}
	return nil
}

// intents returns the unsettled runs by Machine.
func (c *census) intents() map[string]string {
	unsettled := map[string]string{}
	for _, secret := range c.states {
		if intent, ok := secret.Annotations[observe.IntentAnnotation]; ok {
			unsettled[secret.Annotations[observe.OwnerAnnotation]] = intent
		}
	}
	return unsettled
}

func (c *census) locks() []string {
	var held []string
	for _, secret := range c.states {
		if lock, ok := secret.Annotations[observe.LockAnnotation]; ok {
			held = append(held, secret.Name+": "+lock)
		}
	}
	return held
}

// settles waits until there are count Machines, Nodes and states, at rest.
func (w *world) settles(ctx context.Context, count int) {
	GinkgoHelper()
	until(ctx, patience, fmt.Sprintf("%d Machines have settled", count), func(ctx context.Context) error {
		seen, err := w.census(ctx)
		if err != nil {
			return err
		}
		return errors.Join(seen.settled(count), w.atRest())
	})
}

// runs waits until a Machine is Running and its state is settled.
func (w *world) runs(ctx context.Context, name string) {
	GinkgoHelper()
	until(ctx, patience, "Machine "+name+" is Running", func(ctx context.Context) error {
		seen, err := w.census(ctx)
		if err != nil {
			return err
		}
		seen.machines = slices.DeleteFunc(seen.machines,
			func(machine machinev1beta1.Machine) bool { return machine.Name != name })
		if len(seen.machines) != 1 || phaseOf(&seen.machines[0]) != machinev1beta1.PhaseRunning {
			return fmt.Errorf("Machine %s: %s", name, describe(seen.machines))
		}
		return seen.joined()
	})
}

// removed deletes Machines and waits until nothing is left of them.
func (w *world) removed(ctx context.Context, names ...string) {
	GinkgoHelper()
	w.kubectl(ctx, append([]string{"delete", "machine", "--wait=false", "--ignore-not-found"}, names...)...)
	until(ctx, patience, "Machines "+strings.Join(names, ", ")+" are gone", func(ctx context.Context) error {
		seen, err := w.census(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			for _, machine := range seen.machines {
				if machine.Name == name {
					return fmt.Errorf("Machine %s: %s", name, describe([]machinev1beta1.Machine{machine}))
				}
			}
			for _, node := range seen.nodes {
				if node.Name == name {
					return fmt.Errorf("Node %s is there still", name)
				}
			}
			for _, secret := range seen.states {
				if secret.Annotations[observe.OwnerAnnotation] == name {
					return fmt.Errorf("state %s of Machine %s is there still", secret.Name, name)
				}
			}
		}
		return nil
	})
}

func (w *world) get(ctx context.Context, name string) *machinev1beta1.Machine {
	GinkgoHelper()
	machine := &machinev1beta1.Machine{}
	Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, machine)).To(Succeed())
	return machine
}

// node returns a Machine's Node, which has the Machine's name.
func (w *world) node(ctx context.Context, name string) *corev1.Node {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(w.client.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	return node
}

// events returns the messages of an object's events with a reason, oldest first.
func (w *world) events(ctx context.Context, object client.Object, reason string) ([]string, error) {
	var list eventsv1.EventList
	if err := w.client.List(ctx, &list, client.InNamespace(lab.Namespace)); err != nil {
		return nil, err
	}
	var notes []string
	for _, event := range list.Items {
		if event.Regarding.UID == object.GetUID() && event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return notes, nil
}

func phaseOf(machine *machinev1beta1.Machine) string {
	if machine.Status.Phase == nil {
		return ""
	}
	return *machine.Status.Phase
}

func condition(machine *machinev1beta1.Machine, kind machinev1beta1.ConditionType) machinev1beta1.Condition {
	for _, condition := range machine.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return machinev1beta1.Condition{}
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// describe returns a line about each Machine.
func describe(machines []machinev1beta1.Machine) string {
	var lines []string
	for _, machine := range machines {
		line := fmt.Sprintf("%s is %q", machine.Name, phaseOf(&machine))
		if machine.Status.ErrorMessage != nil {
			line += ": " + *machine.Status.ErrorMessage
		}
		for _, c := range machine.Status.Conditions {
			if c.Status != corev1.ConditionTrue {
				line += fmt.Sprintf("; %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
			}
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "there is none"
	}
	return strings.Join(lines, "\n")
}
