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

// Leader provides what package leadership knows about leadership.
type Leader interface {
	// Epoch is the epoch in which this process leads. Began is its start by the API server's clock.
	// Machines from before that may have been served by another process.
	Epoch() state.Epoch
	Began() time.Time
	Confirm(ctx context.Context) error
	DeadIn(ctx context.Context, held state.Epoch) (time.Duration, error)
}

// Options configures a Recovery. All fields but Logger are required.
type Options struct {
	Store *state.Store
	// Runners execute runs, by engine.
	Runners map[v1alpha1.Engine]runner.Runner
	Pool    *runs.Pool
	// Owner identifies this process in state locks.
	Owner string
	// Leader reports the epoch in which this process leads, and whether another process's engines
	// can still act.
	Leader  Leader
	Metrics *reporting.Metrics
	// Logger logs what no Machine shows; default is to discard.
	Logger logr.Logger
}

// Recovery takes over locks from dead processes and recovers the remains of their runs. It is safe
// for concurrent use.
type Recovery struct {
	options Options
	// abandoned are runs whose workspaces were left behind. recovering is held while one is
	// recovered.
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

// Acquire takes a state's lock, also from a process whose engines can no longer act. A lock of this
// process is stale, too: the pool holds one run per Machine, which is the caller's.
func (r *Recovery) Acquire(ctx context.Context, key state.Key, options state.AcquireOptions) (*state.Session, error) {
	options.Lock.Epoch = r.options.Leader.Epoch()
	session, err := r.acquire(ctx, key, &options)
	if locked, ok := errors.AsType[*state.LockedError](err); ok {
		return r.takeOver(ctx, key, options, locked.Lock)
	}
	return session, err
}

// AcquireIdle takes the lock of a state outside a run. It takes over a dead manager's lock. For a
// lock of this process's run it returns a *state.LockedError.
func (r *Recovery) AcquireIdle(ctx context.Context, key state.Key, operation string,
	options state.AcquireOptions) (*state.Session, error) {
	options.Lock = state.Lock{Owner: r.options.Owner, Run: string(uuid.NewUUID()), Operation: operation,
		Epoch: r.options.Leader.Epoch()}
	session, err := r.acquire(ctx, key, &options)
	if locked, ok := errors.AsType[*state.LockedError](err); ok && locked.Lock.Owner != r.options.Owner {
		return r.takeOver(ctx, key, options, locked.Lock)
	}
	return session, err
}

// maxRefuted bounds the invalid epochs accepted from one head in a row.
const maxRefuted = 3

// acquire takes a free lock. A head with a later epoch than this process's either belongs to
// another leader, which ends this process, or is forged. A forged head is taken as well, once
// engines of that epoch could no longer act.
func (r *Recovery) acquire(ctx context.Context, key state.Key, options *state.AcquireOptions) (*state.Session, error) {
	for try := 0; ; try++ {
		session, err := r.options.Store.Acquire(ctx, key, *options)
		later, superseded := errors.AsType[*state.SupersededError](err)
		if !superseded || try == maxRefuted {
			return session, err
		}
		wait, err := r.options.Leader.DeadIn(ctx, later.Held)
		if err != nil {
			return nil, err
		}
		if wait > 0 {
			return nil, actuators.InProgress(wait,
				"the Machine's state %s claims %s, which the Lease does not know; taking it over once no engine of that "+
					"could act any more", key, later.Held)
		}
		r.options.Logger.Info("Taking over a state with an epoch that the Lease does not know: another writer has changed "+
			"it", "state", key.String(), "epoch", later.Held.String())
		options.Refuted = later.Held
	}
}

// Refuted describes the epoch of a taken state that is later than this process's, or returns "".
func Refuted(own state.Epoch, taken *state.Snapshot) string {
	switch {
	case own.Before(taken.Epoch):
		return taken.Epoch.String()
	case taken.Lock != nil && own.Before(taken.Lock.Epoch):
		return taken.Lock.Epoch.String()
	}
	return ""
}

// takeOver takes a lock if its holder can no longer act.
func (r *Recovery) takeOver(ctx context.Context, key state.Key, options state.AcquireOptions,
	met state.Lock) (*state.Session, error) {
	if met.Owner != r.options.Owner {
		held := met.Epoch
		if held.Holder == r.options.Leader.Epoch().Holder {
			held = state.Epoch{} // this process would be the owner, so the epoch is forged
		}
		wait, err := r.options.Leader.DeadIn(ctx, held)
		if err != nil {
			return nil, err
		}
		if wait > 0 {
			return nil, actuators.InProgress(wait,
				"the Machine's state is locked by another manager whose engines may still run (%s); "+
					"the lock is taken over once they cannot", met)
		}
		r.options.Metrics.TakenOver()
	}
	r.options.Logger.Info("Taking over the lock of a dead run", "state", key.String(), "lock", met.String())
	options.Break = &met
	return r.options.Store.Acquire(ctx, key, options)
}
