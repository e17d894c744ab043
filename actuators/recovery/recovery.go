package recovery

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Leader is what must be known about leadership: see package leadership.
type Leader interface {
	// Epoch is the epoch that this process leads in.
	Epoch() state.Epoch
	// Confirm returns nil while this process leads.
	Confirm(ctx context.Context) error
	// DeadIn returns in how long the engines of an epoch can act no more; zero for now.
	DeadIn(ctx context.Context, held state.Epoch) (time.Duration, error)
}

// Options are what a Recovery works with. All must be set but the Logger.
type Options struct {
	Store *state.Store
	// Runners carry runs out, each with the engine that it is filed under.
	Runners map[v1alpha1.Engine]runner.Runner
	// Pool holds the runs of this process.
	Pool *runs.Pool
	// Owner identifies this process among those that have held, hold or will hold state locks.
	Owner string
	// Leader says in which epoch this process leads, and whether the engines of another can still act.
	Leader Leader
	// Metrics are counted in.
	Metrics *reporting.Metrics
	// Logger gets what no Machine shows; nothing when unset.
	Logger logr.Logger
}

// Recovery takes locks over from dead processes, and recovers what their runs have left. It is safe for concurrent use.
type Recovery struct {
	options Options
	// abandoned are runs whose workspaces were left behind; recovering is held while one is recovered.
	abandoned  abandonedRuns
	recovering sync.Mutex
	kept       keptStates
}

// New returns a Recovery.
func New(options Options) *Recovery { return &Recovery{options: options} }

// Identity identifies a run whose workspace is found after a crash.
type Identity struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Owner     string `json:"owner"`
	Run       string `json:"run"`
}

// Acquire takes a state's lock, and takes it over from a process whose engines can act no more. A lock of this very process is over as
// well: the pool holds one run per Machine, and that is the caller's.
func (r *Recovery) Acquire(ctx context.Context, key state.Key, options state.AcquireOptions) (*state.Session, error) {
	options.Lock.Epoch = r.options.Leader.Epoch()
	session, err := r.options.Store.Acquire(ctx, key, options)
	if locked, ok := errors.AsType[*state.LockedError](err); ok {
		return r.takeOver(ctx, key, options, locked.Lock)
	}
	return session, err
}

// AcquireIdle takes the lock of a state for something else than a run. That of a dead manager is taken over, that of a run of this process
// is not: it is a *state.LockedError.
func (r *Recovery) AcquireIdle(ctx context.Context, key state.Key, operation string, options state.AcquireOptions) (*state.Session, error) {
	options.Lock = state.Lock{Owner: r.options.Owner, Run: string(uuid.NewUUID()), Operation: operation, Epoch: r.options.Leader.Epoch()}
	session, err := r.options.Store.Acquire(ctx, key, options)
	if locked, ok := errors.AsType[*state.LockedError](err); ok && locked.Lock.Owner != r.options.Owner {
		return r.takeOver(ctx, key, options, locked.Lock)
	}
	return session, err
}

// takeOver takes a lock that was met, if its holder can act no more.
func (r *Recovery) takeOver(ctx context.Context, key state.Key, options state.AcquireOptions, met state.Lock) (*state.Session, error) {
	if met.Owner != r.options.Owner {
		wait, err := r.options.Leader.DeadIn(ctx, met.Epoch)
		if err != nil {
			return nil, err
		}
		if wait > 0 {
			return nil, actuators.InProgress(wait, "the Machine's state is locked by another manager whose engines may still run (%s); "+
				"the lock is taken over when they cannot", met)
		}
		r.options.Metrics.TakenOver()
	}
	r.options.Logger.Info("Taking over the lock of a run that is dead", "state", key.String(), "lock", met.String())
	options.Break = &met
	return r.options.Store.Acquire(ctx, key, options)
}
