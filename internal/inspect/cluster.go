package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
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
	// Selection limits it to Machines, and to those of MachineSets and MachineDeployments.
	Selection
	// Sets are MachineSets and MachineDeployments.
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
	// Deployments, Sets, Machines and States are sorted by namespace and name.
	Deployments []v1beta1.MachineDeployment
	Sets        []machinev1beta1.MachineSet
	Machines    []machinev1beta1.Machine
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
	slices.SortFunc(facts.Deployments, func(a, b v1beta1.MachineDeployment) int { return byName(&a, &b) })
	slices.SortFunc(facts.Sets, func(a, b machinev1beta1.MachineSet) int { return byName(&a, &b) })
	slices.SortFunc(facts.Machines, func(a, b machinev1beta1.Machine) int { return byName(&a, &b) })
	return facts, nil
}

// readMachines reads what is selected, the MachineSets of MachineDeployments that are, and the Machines of MachineSets.
func (c *Cluster) readMachines(ctx context.Context, facts *Facts, want Want) error {
	kinds := []string{kindMachine}
	switch {
	case want.Sets && len(want.Names) > 0:
		kinds = []string{kindDeployment, kindSet, kindMachine}
	case want.Sets:
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
	deployments := selected.deployments()
	if want.Sets && len(want.Names) == 0 {
		if deployments, err = c.readDeployments(ctx, facts, want.Selection); err != nil {
			return err
		}
	}
	sets := selected.sets()
	if !want.all() {
		if sets, err = ownedBy(ctx, c, kindSet, deployments, sets); err == nil {
			facts.Machines, err = ownedBy(ctx, c, kindMachine, sets, facts.Machines)
		}
	}
	if want.Sets {
		facts.Deployments, facts.Sets = deployments, sets
	}
	return err
}

// readDeployments reads MachineDeployments by their labels. A cluster may lack their CRD, and a user the right.
func (c *Cluster) readDeployments(ctx context.Context, facts *Facts, s Selection) ([]v1beta1.MachineDeployment, error) {
	read, err := c.find(ctx, s, kindDeployment)
	switch {
	case absent(err):
		return nil, nil
	case Denied(err):
		facts.Notes = append(facts.Notes, "you may not list MachineDeployments, so that only their MachineSets are shown; "+RightsHint)
		return nil, nil
	case err != nil:
		return nil, err
	}
	return read.deployments(), nil
}

// ownedBy adds to known the objects of a kind that owners control.
func ownedBy[Owner, T any, O interface {
	*Owner
	metav1.Object
}, P interface {
	*T
	metav1.Object
}](ctx context.Context, c *Cluster, kind string, owners []Owner, known []T) ([]T, error) {
	if len(owners) == 0 {
		return known, nil
	}
	all, err := c.find(ctx, Selection{}, kind)
	if err != nil {
		return nil, err
	}
	isOwner, isKnown := map[types.UID]bool{}, map[types.UID]bool{}
	for i := range owners {
		isOwner[O(&owners[i]).GetUID()] = true
	}
	for i := range known {
		isKnown[P(&known[i]).GetUID()] = true
	}
	for _, one := range ofType[T](all.objects) {
		if isOwner[ownerOf(P(&one))] && !isKnown[P(&one).GetUID()] {
			known = append(known, one)
		}
	}
	return known, nil
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

// Get returns the objects that are named by TYPE/NAME, or NAME for a MachineSet.
func (c *Cluster) Get(ctx context.Context, names []string) ([]client.Object, error) {
	selected, err := c.find(ctx, Selection{Names: names}, kindSet)
	if err != nil {
		return nil, err
	}
	if len(selected.missing) > 0 {
		return nil, c.notFound(ctx, selected.missing[0])
	}
	for _, object := range selected.objects {
		kind, err := apiutil.GVKForObject(object, c.scheme)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", object.GetName(), err)
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
	}
	return selected.objects, nil
}
