package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	// interval is how often up to 2,000 states are compared with Machines. The destroy of a deleted
	// Machine's state waits for the next pass.
	interval = 2 * time.Minute
	// intervalEach, times the number of states, is the interval for more of them. It bounds the
	// load on an idle manager and on the API server.
	intervalEach = 60 * time.Millisecond
	// destroyInterval is the interval while a state is still to be destroyed. Nothing else retries
	// a run that failed or had to wait for a lock.
	destroyInterval = 15 * time.Second
	// firstPassEach delays the first pass for each Machine. A new leader reconciles all Machines
	// first, which takes half of that time each (docs/benchmarks.md).
	firstPassEach = 5 * time.Millisecond
	// secondPass is the delay between the first and second pass.
	secondPass = 30 * time.Second
)

// Actuator is what the pass needs from the actuator.
type Actuator interface {
	// DestroyWithoutMachine submits the destroy of the resources in a deleted Machine's state.
	DestroyWithoutMachine(machine types.NamespacedName, uid types.UID) (runs.Status, error)
	// AcquireIdle takes a state's lock, even from a dead manager, but never from a run of this
	// process.
	AcquireIdle(ctx context.Context, key state.Key, operation string, options state.AcquireOptions) (*state.Session, error)
	// UnsavedStates returns the unsaved states that list resources missing from all other states.
	UnsavedStates(ctx context.Context, namespace string) ([]state.Orphan, error)
	// ListInstances lists the instances of a Machine's cluster. known is false if its module
	// cannot.
	ListInstances(ctx context.Context, machine *machinev1beta1.Machine) (listed []lifecycle.ListedInstance, known bool,
		err error)
}

// Options configures Orphans. All are required unless a default is named.
type Options struct {
	// Namespace is the namespace of the Machines.
	Namespace string
	// Client reads the API server directly, not a cache.
	Client client.Client
	// Cache reads Machines and may lag behind. Machines that it lacks are read with the Client.
	// Default is the Client.
	Cache    client.Reader
	Actuator Actuator
	Store    *state.Store
	Catalog  *module.Catalog
	// Modules is shared with the actuator, because it knows which modules are being stored.
	Modules *store.Store
	// Owner identifies this process in state locks. If empty, every lock counts as another's.
	Owner string
	// Installation is the operator's own. An instance without its UID is reported, but never
	// destroyed by the policy.
	Installation *installation.Installation
	Recorder     events.Recorder
	// Policy says what happens to a state whose Machine is gone without a request; default Retain.
	Policy Policy
	// GracePeriod is how long after its discovery a state is destroyed under PolicyDelete, and the
	// minimum age of a reported orphaned instance.
	GracePeriod time.Duration
	// Clock defaults to the system clock.
	Clock clock.PassiveClock
	// Logger logs what no Machine shows; default is to discard.
	Logger logr.Logger
}

// Orphans is the pass over all states. It is a manager.Runnable and a prometheus.Collector.
type Orphans struct {
	Options
	gauges
	rewriting rewriting
}

// New returns Orphans.
func New(options Options) *Orphans {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Cache == nil {
		options.Cache = options.Client
	}
	return &Orphans{Options: options, gauges: newGauges()}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (o *Orphans) NeedLeaderElection() bool { return true }

// Start makes passes until ctx ends.
func (o *Orphans) Start(ctx context.Context) error {
	wait := o.firstPass(ctx)
	for passes := 1; ; passes++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		next, err := o.Check(ctx)
		if err != nil && ctx.Err() == nil {
			o.Logger.Error(err, "Cannot check the states")
		}
		wait = pause(passes, next)
	}
}

// firstPass returns the delay before the first pass, during which existing Machines are reconciled.
func (o *Orphans) firstPass(ctx context.Context) time.Duration {
	machines, err := o.cached(ctx)
	if err != nil {
		return 0 // the pass lists them itself and reports the error
	}
	return time.Duration(len(machines)) * firstPassEach
}

// pause returns the delay after the given number of passes. The second pass follows soon after the
// first. It catches Machines whose instance a former leader has destroyed and whose empty state it
// had not deleted yet.
func pause(passes int, next time.Duration) time.Duration {
	if passes == 1 {
		return min(next, secondPass)
	}
	return next
}

// intervalFor returns the interval for the given number of states.
func intervalFor(states int) time.Duration { return max(interval, time.Duration(states)*intervalEach) }

// Check makes one pass and returns the delay before the next.
func (o *Orphans) Check(ctx context.Context) (next time.Duration, err error) {
	heads, err := o.Store.List(ctx, o.Namespace)
	if err != nil {
		return interval, err
	}
	o.show(findingsOf(heads, o.Owner, o.Clock.Now()))
	next, err = o.report(ctx, heads)
	return next, errors.Join(err, o.rewriteStates(ctx, heads), o.tidyModules(ctx, heads))
}

func (o *Orphans) report(ctx context.Context, heads []state.Head) (next time.Duration, err error) {
	next = intervalFor(len(heads))
	orphaned, err := o.find(ctx, heads)
	if err != nil {
		return next, err
	}
	unsaved, err := o.Actuator.UnsavedStates(ctx, o.Namespace)
	if err != nil {
		return next, err
	}
	o.states.Set(float64(len(orphaned) + len(unsaved)))
	for _, one := range unsaved {
		o.Logger.Info("An unsaved state lists resources that no other state has; see docs/troubleshooting.md",
			"secret", one.Name, "machine", one.Machine, "resources", statefile.Names(one.Missing), "reason", one.Reason)
	}
	for _, head := range orphaned {
		destroys, err := o.handle(ctx, head)
		if err != nil {
			o.Logger.Error(err, "Cannot handle a state without a Machine", "state", head.Key.String())
		}
		if destroys {
			next = destroyInterval
		}
	}
	return next, nil
}

// find returns the states without a Machine. States were listed first, so a Machine created
// meanwhile has none among them. Orphan records of states with a Machine are dropped.
func (o *Orphans) find(ctx context.Context, heads []state.Head) ([]state.Head, error) {
	known, err := o.cached(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(heads, func(head state.Head) bool { return !known[head.Key] }) {
		if known, err = o.live(ctx); err != nil {
			return nil, err
		}
	}
	var orphaned []state.Head
	for _, head := range heads {
		if !known[head.Key] {
			orphaned = append(orphaned, head)
		} else if err := o.unmark(ctx, head); err != nil {
			o.Logger.Error(err, "Cannot record that a state has its Machine again", "state", head.Key.String())
		}
	}
	return orphaned, nil
}

// cached returns the state keys of all Machines in the cache.
func (o *Orphans) cached(ctx context.Context) (map[state.Key]bool, error) {
	machines := &machinev1beta1.MachineList{}
	if err := o.Cache.List(ctx, machines, client.InNamespace(o.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	known := make(map[state.Key]bool, len(machines.Items))
	for i := range machines.Items {
		known[state.KeyFor(machines.Items[i].Namespace, machines.Items[i].UID)] = true
	}
	return known, nil
}

// livePage is the page size for reading Machines.
const livePage = 500

// live returns the state keys of all Machines on the API server.
func (o *Orphans) live(ctx context.Context) (map[state.Key]bool, error) {
	known := map[state.Key]bool{}
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind("MachineList"))
		if err := o.Client.List(ctx, page, client.InNamespace(o.Namespace), client.Limit(livePage),
			client.Continue(next)); err != nil {
			return nil, fmt.Errorf("listing Machines: %w", err)
		}
		for i := range page.Items {
			known[state.KeyFor(page.Items[i].Namespace, page.Items[i].UID)] = true
		}
		if next = page.Continue; next == "" {
			return known, nil
		}
	}
}

// uidOf returns the UID of the Machine that a state belongs to.
func uidOf(head state.Head) types.UID { return types.UID(head.Labels[state.LabelMachineUID]) }

// machineOf returns the name of the Machine that a state belongs to.
func machineOf(head state.Head) types.NamespacedName {
	return types.NamespacedName{Namespace: head.Key.Namespace,
		Name: head.Meta[strings.TrimPrefix(state.AnnotationMachine, state.Prefix)]}
}
