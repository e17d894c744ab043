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
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	// interval is how often states are compared with Machines, up to 2,000 of them. A destroy whose Machine is gone waits for the next time.
	interval = 2 * time.Minute
	// intervalEach, times the number of states, is how often more of them are, so that a manager at rest, and the API server, do not spend more on more of them.
	intervalEach = 60 * time.Millisecond
	// destroyInterval is how often that is done while a state is to be destroyed that is still there: nothing else repeats a run that had to wait
	// for a lock, or failed.
	destroyInterval = 15 * time.Second
	// firstPassEach is how long the first pass is put off for each Machine: when a manager begins to lead it reconciles all of them, and is done with
	// one in half of that time (docs/benchmarks.md).
	firstPassEach = 5 * time.Millisecond
	// secondPass is how long after the first pass the second is made.
	secondPass = 30 * time.Second
)

// Actuator does what only the actuator may do with a state.
type Actuator interface {
	// DestroyWithoutMachine submits the destroy of what the state of a Machine that is gone has.
	DestroyWithoutMachine(machine types.NamespacedName, uid types.UID) (runs.Status, error)
	// AcquireIdle takes the lock of a state, and takes over that of a dead manager, but never that of a run of this process.
	AcquireIdle(ctx context.Context, key state.Key, operation string, options state.AcquireOptions) (*state.Session, error)
	// UnsavedStates returns the states that could not be saved and name what no other state knows.
	UnsavedStates(ctx context.Context, namespace string) ([]state.Orphan, error)
	// ListInstances lists the instances of a Machine's cluster; known is false where its module cannot.
	ListInstances(ctx context.Context, machine *machinev1beta1.Machine) (listed []lifecycle.ListedInstance, known bool, err error)
}

// Options are what Orphans work with. All must be set but those that say what they are otherwise.
type Options struct {
	// Namespace of the Machines.
	Namespace string
	// Client reads the API server itself, never a cache.
	Client client.Client
	// Cache reads Machines, perhaps from before a moment: whose Machine it does not have is looked for with the Client. The Client when nil.
	Cache    client.Reader
	Actuator Actuator
	Store    *state.Store
	Catalog  *module.Catalog
	// Modules is the actuator's own: it knows what is being stored.
	Modules *store.Store
	// Owner is this process in locks of states. Every lock counts as another's when it is empty.
	Owner string
	// Recorder sends events.
	Recorder events.Recorder
	// Policy says what becomes of a state whose Machine is gone, without a request; it is retained when empty.
	Policy Policy
	// GracePeriod is how long after it was first seen a state is destroyed, with PolicyDelete, and how old an instance without a Machine is that
	// is reported.
	GracePeriod time.Duration
	// Clock is the system's when nil.
	Clock clock.PassiveClock
	// Logger gets what no Machine shows; nothing when unset.
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

// Start passes over the states until ctx ends.
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
			o.Logger.Error(err, "Checking the states")
		}
		wait = pause(passes, next)
	}
}

// firstPass returns how long to wait before the first pass, in which the Machines are reconciled that there are.
func (o *Orphans) firstPass(ctx context.Context) time.Duration {
	machines, err := o.cached(ctx)
	if err != nil {
		return 0 // the pass lists them itself, and reports this
	}
	return time.Duration(len(machines)) * firstPassEach
}

// pause returns how long to wait after that many passes. The first is made soon after this process leads: Machines whose instance another process has
// destroyed go right afterwards, and an empty state may stay that it had not deleted yet.
func pause(passes int, next time.Duration) time.Duration {
	if passes == 1 {
		return min(next, secondPass)
	}
	return next
}

// intervalFor returns how often so many states are compared with Machines.
func intervalFor(states int) time.Duration { return max(interval, time.Duration(states)*intervalEach) }

// Check passes over the states once, and returns when to do it again.
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
		o.Logger.Info("A state that an engine could not save names resources that no other state knows; see docs/troubleshooting.md",
			"secret", one.Name, "machine", one.Machine, "resources", statefile.Names(one.Missing), "reason", one.Reason)
	}
	for _, head := range orphaned {
		destroys, err := o.handle(ctx, head)
		if err != nil {
			o.Logger.Error(err, "Handling a state without a Machine", "state", head.Key.String())
		}
		if destroys {
			next = destroyInterval
		}
	}
	return next, nil
}

// find returns the states without a Machine. States were listed first: a Machine that is made meanwhile has none among them. What others say of
// themselves as orphans is dropped: a Machine is back.
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
			o.Logger.Error(err, "Recording that a state has its Machine again", "state", head.Key.String())
		}
	}
	return orphaned, nil
}

// cached returns the keys of the states of all Machines, as the cache knows them.
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

// livePage is how many Machines are read at a time.
const livePage = 500

// live returns the same as the API server knows them.
func (o *Orphans) live(ctx context.Context) (map[state.Key]bool, error) {
	known := map[state.Key]bool{}
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind("MachineList"))
		if err := o.Client.List(ctx, page, client.InNamespace(o.Namespace), client.Limit(livePage), client.Continue(next)); err != nil {
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
	return types.NamespacedName{Namespace: head.Key.Namespace, Name: head.Meta[strings.TrimPrefix(state.AnnotationMachine, state.Prefix)]}
}
