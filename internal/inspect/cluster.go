package inspect

import (
	"context"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// page is how many objects one answer of the API server holds.
const page = 500

// Cluster reads a cluster, and writes nothing.
type Cluster struct {
	reader client.Client
	store  *state.Store
	// namespace is empty for all of them.
	namespace string
}

// New answers the cluster behind a client of [NewClient]; the empty namespace stands for all.
func New(reader client.Client, namespace string) *Cluster {
	return &Cluster{reader: reader, store: state.New(reader, state.Options{}), namespace: namespace}
}

// Want says what Read reads besides Machines.
type Want struct {
	// Sets are MachineSets.
	Sets bool
	// Nodes are read where that is allowed.
	Nodes bool
	// States are the heads of states.
	States bool
	// StatesIfAllowed reads the heads of states where that is allowed.
	StatesIfAllowed bool
}

// Facts are what a cluster was found to have.
type Facts struct {
	// Namespace that was read; empty for all.
	Namespace string
	// Now is when it was read.
	Now time.Time
	// Sets, Machines and States are sorted by namespace and name.
	Sets     []machinev1beta1.MachineSet
	Machines []machinev1beta1.Machine
	// Nodes by name; nil where they were not read.
	Nodes map[string]*corev1.Node
	// States are the heads; nil where they were not read.
	States []state.Head
	// StatesKnown says that States were read.
	StatesKnown bool
	// Notes say what could not be read.
	Notes []string
}

// Read reads what is wanted.
func (c *Cluster) Read(ctx context.Context, want Want, now time.Time) (*Facts, error) {
	facts := &Facts{Namespace: c.namespace, Now: now}
	// States come first: a Machine that is made meanwhile has none among them, and no state is taken for one without a Machine.
	if want.States || want.StatesIfAllowed {
		if err := c.readStates(ctx, facts, want.States); err != nil {
			return nil, err
		}
	}
	var err error
	if want.Sets {
		if facts.Sets, err = c.sets(ctx); err != nil {
			return nil, err
		}
	}
	if facts.Machines, err = c.machines(ctx); err != nil {
		return nil, err
	}
	if want.Nodes {
		if err := c.readNodes(ctx, facts); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(facts.Sets, func(a, b machinev1beta1.MachineSet) int { return byName(&a, &b) })
	slices.SortFunc(facts.Machines, func(a, b machinev1beta1.Machine) int { return byName(&a, &b) })
	return facts, nil
}

func (c *Cluster) readStates(ctx context.Context, facts *Facts, required bool) error {
	heads, err := c.store.List(ctx, c.namespace)
	if Denied(err) && !required {
		facts.Notes = append(facts.Notes, "you may not list Secrets, so that locks and intents of states are not known; "+rightsMend)
		return nil
	}
	if err != nil {
		return err
	}
	facts.States, facts.StatesKnown = heads, true
	return nil
}

func (c *Cluster) readNodes(ctx context.Context, facts *Facts) error {
	nodes, err := listAll(ctx, c, "", func() *corev1.NodeList { return &corev1.NodeList{} },
		func(l *corev1.NodeList) []corev1.Node { return l.Items })
	if Denied(err) {
		facts.Notes = append(facts.Notes, "you may not list Nodes, so that only their names are known; "+rightsMend)
		return nil
	}
	if err != nil {
		return err
	}
	facts.Nodes = map[string]*corev1.Node{}
	for i := range nodes {
		facts.Nodes[nodes[i].Name] = &nodes[i]
	}
	return nil
}

// listAll reads all pages of a list. Each page gets a list of its own: what is decoded into an old one may keep parts of it.
func listAll[L client.ObjectList, T any](ctx context.Context, c *Cluster, namespace string, fresh func() L, items func(L) []T) ([]T, error) {
	var all []T
	for next := ""; ; {
		list := fresh()
		if err := c.reader.List(ctx, list, &client.ListOptions{Namespace: namespace, Limit: page, Continue: next}); err != nil {
			return nil, err
		}
		all = append(all, items(list)...)
		if next = list.GetContinue(); next == "" {
			return all, nil
		}
	}
}

func (c *Cluster) machines(ctx context.Context) ([]machinev1beta1.Machine, error) {
	return listAll(ctx, c, c.namespace, func() *machinev1beta1.MachineList { return &machinev1beta1.MachineList{} },
		func(l *machinev1beta1.MachineList) []machinev1beta1.Machine { return l.Items })
}

func (c *Cluster) sets(ctx context.Context) ([]machinev1beta1.MachineSet, error) {
	return listAll(ctx, c, c.namespace, func() *machinev1beta1.MachineSetList { return &machinev1beta1.MachineSetList{} },
		func(l *machinev1beta1.MachineSetList) []machinev1beta1.MachineSet { return l.Items })
}

// MachineNames answers the names of the Machines, for a shell that completes them.
func (c *Cluster) MachineNames(ctx context.Context) ([]string, error) {
	all, err := c.machines(ctx)
	facts := Facts{Machines: all}
	return facts.machineNames(), err
}

// SetNames answers the names of the MachineSets, for a shell that completes them.
func (c *Cluster) SetNames(ctx context.Context) ([]string, error) {
	all, err := c.sets(ctx)
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names, err
}
