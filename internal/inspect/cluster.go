package inspect

import (
	"context"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Cluster reads a cluster, and writes nothing.
type Cluster struct {
	config *rest.Config
	scheme *runtime.Scheme
	store  *state.Store
	reader client.Reader
	// namespace is empty for all of them.
	namespace string
}

// New returns the cluster of a client configuration, with what states are read with; the empty namespace stands for all.
func New(config *rest.Config, namespace string, states state.Options) (*Cluster, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	reader, err := NewClient(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{config: config, scheme: scheme, store: state.New(reader, states), reader: reader, namespace: namespace}, nil
}

// listing is where and when a list was read.
type listing struct {
	// namespace is empty for all of them.
	namespace string
	now       time.Time
}

// WithNamespaces implements print.Table.
func (l listing) WithNamespaces() bool { return l.namespace == "" }

// Namespace returns the namespace that is read, empty for all.
func (c *Cluster) Namespace() string { return c.namespace }

// States returns the store of the states.
func (c *Cluster) States() *state.Store { return c.store }

// Reader returns a client that reads the cluster.
func (c *Cluster) Reader() client.Reader { return c.reader }

// Want says what Read reads besides Machines.
type Want struct {
	// Selection limits it to Machines, and to those of MachineSets.
	Selection
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
	// Limited says that a selection was made, and Named are the names of Machines in it: States may be of Machines that are gone.
	Limited bool
	Named   []string
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
	if err := c.readMachines(ctx, facts, want); err != nil {
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

// readMachines reads what is selected, and the Machines of MachineSets that are.
func (c *Cluster) readMachines(ctx context.Context, facts *Facts, want Want) error {
	kinds := []string{kindMachine}
	if want.Sets {
		kinds = []string{kindSet, kindMachine}
	}
	selected, err := c.find(ctx, want.Selection, kinds...)
	if err != nil {
		return err
	}
	if len(selected.missing) > 0 && !want.States {
		return c.notFound(ctx, selected.missing[0])
	}
	facts.Machines, facts.Limited, facts.Named = selected.machines(), !want.all(), selected.named
	sets := selected.sets()
	if want.Sets {
		facts.Sets = sets
	}
	if want.all() || len(sets) == 0 {
		return nil
	}
	others, err := c.find(ctx, Selection{}, kindMachine)
	if err != nil {
		return err
	}
	for _, machine := range others.machines() {
		isOwner := func(set machinev1beta1.MachineSet) bool { return set.UID == ownerOf(&machine) }
		isKnown := func(known machinev1beta1.Machine) bool { return known.UID == machine.UID }
		if slices.ContainsFunc(sets, isOwner) && !slices.ContainsFunc(facts.Machines, isKnown) {
			facts.Machines = append(facts.Machines, machine)
		}
	}
	return nil
}

func (c *Cluster) readStates(ctx context.Context, facts *Facts, required bool) error {
	heads, err := c.store.List(ctx, c.namespace)
	if Denied(err) && !required {
		facts.Notes = append(facts.Notes, "you may not list Secrets, so that locks and intents of states are not known; "+RightsHint)
		return nil
	}
	if err != nil {
		return err
	}
	facts.States, facts.StatesKnown = heads, true
	return nil
}

func (c *Cluster) readNodes(ctx context.Context, facts *Facts) error {
	nodes, err := c.find(ctx, Selection{}, kindNode)
	if Denied(err) {
		facts.Notes = append(facts.Notes, "you may not list Nodes, so that only their names are known; "+RightsHint)
		return nil
	}
	if err != nil {
		return err
	}
	facts.Nodes = map[string]*corev1.Node{}
	for _, node := range ofType[corev1.Node](nodes.objects) {
		facts.Nodes[node.Name] = &node
	}
	return nil
}

// Names returns the names of all objects of kinds, for a shell that completes them.
func (c *Cluster) Names(ctx context.Context, kinds ...string) ([]string, error) {
	all, err := c.find(ctx, Selection{}, kinds...)
	if err != nil {
		return nil, err
	}
	return all.names(), nil
}

// Get returns the MachineSets and Machines that are named by TYPE/NAME, or NAME for a MachineSet.
func (c *Cluster) Get(ctx context.Context, names []string) ([]client.Object, error) {
	selected, err := c.find(ctx, Selection{Names: names}, kindSet)
	if err != nil {
		return nil, err
	}
	if len(selected.missing) > 0 {
		return nil, c.notFound(ctx, selected.missing[0])
	}
	for _, object := range selected.objects {
		kind := kindSet
		if _, ok := object.(*machinev1beta1.Machine); ok {
			kind = kindMachine
		}
		object.GetObjectKind().SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(kind))
	}
	return selected.objects, nil
}
