package chaos

import (
	"fmt"
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// Harm is a kind of violation.
type Harm string

const (
	Lost     Harm = "lost"
	Doubled  Harm = "doubled"
	leftOver Harm = "left over"
	Stuck    Harm = "stuck"
	Failed   Harm = "failed"
	Leaked   Harm = "leaked"
	Beyond   Harm = "beyond bounds"
)

// Violation is one thing that must not happen.
type Violation struct {
	Harm Harm
	Text string
}

func (v Violation) String() string { return string(v.Harm) + ": " + v.Text }

// Machine is the part of a Machine that checks read.
type Machine struct {
	Name, UID, Set, Phase, Problem string
	Deleting, Linked               bool
	// NotReady is set if the Machine has a Node that is not ready.
	NotReady bool
}

// Item is an instance, or a part of one.
type Item struct {
	// Kind is Node, servers, ports or trunks.
	Kind, ID, Name, Machine string
}

// Instance reports whether it is an instance.
func (i Item) Instance() bool { return i.Kind == "Node" || i.Kind == "servers" }

type State struct {
	Name, Machine, Owner, Role, Lock, Intent string
}

// Facts are a snapshot of everything.
type Facts struct {
	Machines []Machine
	Items    []Item
	States   []State
	// Pools are the MachineDeployments by name.
	Pools map[string]Pool
	// Kubelets are Nodes that joined by themselves, by the ID of their instance.
	Kubelets map[string]string
	// Running are processes of runs, Folders the leftovers of runs.
	Running, Folders []string
}

// Expected is what a round expects.
type Expected struct {
	// Replicas are the sizes of the existing MachineSets.
	Replicas map[string]int
	// MayFail are the UIDs of Machines whose instance the round removed.
	MayFail map[string]bool
	// Forced are Machines whose finalizer was removed. A state with an instance, or a possible one, must stay for an
	// administrator.
	Forced map[string]bool
	// Taken are the Machines that the round deleted, or whose instance it removed, and their MachineSets.
	Taken map[string]string
}

// Fleet compares the facts with the expectation.
func Fleet(f *Facts, e *Expected) []Violation {
	v := &findings{}
	counts := map[string]int{}
	for _, machine := range f.Machines {
		if _, wanted := e.Replicas[machine.Set]; !wanted || machine.Deleting {
			v.add(Stuck, "Machine %s (%s) is not gone: %s", machine.Name, machine.Phase, machine.Problem)
			continue
		}
		counts[machine.Set]++
		v.machine(f, e, machine)
	}
	for set, want := range e.Replicas {
		if got := counts[set]; got != want {
			v.add(Lost, "MachineSet %s has %d Machines, wanted are %d", set, got, want)
		}
	}
	for name, pool := range f.Pools {
		if pool.Problem != "" && !slices.ContainsFunc(pool.Machines, func(m Machine) bool { return e.MayFail[m.UID] }) {
			v.add(Stuck, "MachineDeployment %s is not rolled out: %s", name, pool.Problem)
		}
	}
	v.strays(f, e)
	v.rest(f)
	return v.found
}

// Nothing is Fleet after all MachineSets are deleted.
func Nothing(f *Facts, e *Expected) []Violation {
	none := *e
	none.Replicas = nil
	found := Fleet(f, &none)
	for id, node := range f.Kubelets {
		if !slices.ContainsFunc(f.Items, func(i Item) bool { return i.ID == id }) {
			found = append(found, Violation{leftOver, fmt.Sprintf("Node %s of instance %s, which is gone", node, id)})
		}
	}
	return found
}

type findings struct{ found []Violation }

func (v *findings) add(harm Harm, format string, values ...any) {
	v.found = append(v.found, Violation{harm, fmt.Sprintf(format, values...)})
}

// machine checks an expected Machine.
func (v *findings) machine(f *Facts, e *Expected, m Machine) {
	mayFail := e.MayFail[m.UID]
	instances := f.instancesOf(m.UID)
	switch {
	case m.Phase == "Failed" && !mayFail:
		v.add(Failed, "Machine %s: %s", m.Name, m.Problem)
	case m.Phase != "Failed" && (m.Phase != "Running" || !m.Linked):
		v.add(Stuck, "Machine %s is %s, linked %t: %s", m.Name, m.Phase, m.Linked, m.Problem)
	}
	switch {
	case len(instances) == 0 && !mayFail:
		v.add(Lost, "Machine %s (%s) has no instance", m.Name, m.Phase)
	case len(instances) > 1:
		v.add(Doubled, "Machine %s has %d instances: %v", m.Name, len(instances), instances)
	}
	heads := 0
	for _, state := range f.States {
		if state.Machine == m.UID && state.Role == "head" {
			heads++
		}
	}
	if heads != 1 {
		v.add(Lost, "Machine %s (%s) has %d states: %s", m.Name, m.Phase, heads, m.Problem)
	}
}

// strays checks what belongs to no Machine.
func (v *findings) strays(f *Facts, e *Expected) {
	owned := map[string]bool{}
	for _, machine := range f.Machines {
		owned[machine.UID] = true
	}
	known := map[string]bool{}
	for _, state := range f.States {
		known[state.Machine] = true
		// If a create was interrupted and the finalizer of its Machine was then removed, whether it succeeded stays
		// unknown.
		unresolved := e.Forced[state.Machine] && !owned[state.Machine]
		if state.Lock != "" || state.Intent != "" && !unresolved {
			v.add(Stuck, "state %s of Machine %s is not settled: lock %s, intent %s", state.Name, state.Owner,
				state.Lock, state.Intent)
		}
		if !owned[state.Machine] && (!e.Forced[state.Machine] ||
			state.Intent == "" && len(f.itemsOf(state.Machine)) == 0) {
			v.add(leftOver, "state %s of Machine %s, which is gone", state.Name, state.Owner)
		}
	}
	for _, item := range f.Items {
		if !owned[item.Machine] && (!e.Forced[item.Machine] || !known[item.Machine]) {
			v.add(leftOver, "%s %s (%s) of Machine %s, which is gone; a state knows of it: %t", item.Kind, item.Name,
				item.ID, item.Machine, known[item.Machine])
		}
	}
}

// rest checks the leftovers of runs.
func (v *findings) rest(f *Facts) {
	for _, process := range f.Running {
		v.add(leftOver, "process %s", process)
	}
	for _, folder := range f.Folders {
		v.add(leftOver, "folder %s", folder)
	}
}

func (f *Facts) itemsOf(machine string) []Item {
	return slices.DeleteFunc(slices.Clone(f.Items), func(i Item) bool { return i.Machine != machine })
}

func (f *Facts) instancesOf(machine string) []Item {
	return slices.DeleteFunc(f.itemsOf(machine), func(i Item) bool { return !i.Instance() })
}

// halfMade is the age up to which an incomplete object may be replaced. Something may depend on an older one.
const halfMade = 20 * time.Second

// Twice checks the cloud's history: no two instances, or parts, may exist at the same time, and none may be replaced
// once in use.
func Twice(history []openstack.Made) []Violation {
	v := &findings{}
	for i, first := range history {
		for _, second := range history[i+1:] {
			if first.Machine == "" || first.Machine != second.Machine || first.Kind != second.Kind ||
				first.Name != second.Name {
				continue
			}
			switch {
			case first.Together(second):
				v.add(Doubled, "%s %s of Machine %s: %s and %s at one time", first.Kind, first.Name,
					first.Machine, first.ID, second.ID)
			case first.Kind == "servers" && (first.Outside || first.Removed.Sub(first.Made) > halfMade):
				v.add(Doubled, "server %s of Machine %s was made again, %s in place of %s", first.Name,
					first.Machine, second.ID, first.ID)
			}
		}
	}
	return v.found
}

// nodesTwice checks the Nodes that each Machine ever had. Names are unique, so a second one exists only after the
// first.
func nodesTwice[UID ~string](made map[string][]UID) []Violation {
	v := &findings{}
	for machine, nodes := range made {
		if len(nodes) > 1 {
			v.add(Doubled, "Machine %s has had Nodes %v", machine, nodes)
		}
	}
	return v.found
}
