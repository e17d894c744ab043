package runs

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Options configures a Pool. Zero values take the defaults named.
type Options struct {
	// MaxConcurrent is how many runs execute at once; default 4.
	MaxConcurrent int
	// MaxConcurrentDrift is how many of these may be drift checks; default a quarter, at least one.
	MaxConcurrentDrift int
	// MaxBatch is how many runs with the same Request.Batch may be executed together, MaxBatchDrift how many drift checks; default 1, each alone.
	MaxBatch, MaxBatchDrift int
	// MaxPerGroup is how many workers the runs of one group may hold while others wait; default half of them, at least one. A group that
	// is the only one to wait may hold more, but leaves an eighth of the workers, at least one, to whoever comes next.
	MaxPerGroup int
	// MaxPerCredential is how many workers the runs with one credential may hold while others wait; default three quarters of them,
	// rounded up. Nothing is held back for other credentials.
	MaxPerCredential int
	// Aging is how long a run waits to gain one rank of precedence; default one minute.
	Aging time.Duration
	// MaxQueued bounds the runs that wait; default 10000.
	MaxQueued int
	// Deadline bounds a run's Execute where the request names none; default 30 minutes.
	Deadline time.Duration
	// MinDeadline is what the deadline of a run is halved down to, which used up its last one; default 5 minutes.
	MinDeadline time.Duration
	// MaxWait bounds how long a run may wait for something outside of this process, see Pool.Waits; default 24 hours.
	MaxWait time.Duration
	// BookkeepingTimeout bounds Intend and Settle, each; default 2 minutes.
	BookkeepingTimeout time.Duration
	// StopTimeout bounds how long Start waits for running tasks once it is stopped; default 4 minutes.
	StopTimeout time.Duration
	// RetryBase is the pause after a first failure, doubled with every further one up to RetryMax; defaults 5 seconds, 10 minutes.
	RetryBase, RetryMax time.Duration

	// Memory is what runs must fit into; nil for no bound.
	Memory Memory

	Clock   clock.PassiveClock
	Logger  logr.Logger
	Metrics *Metrics
}

func (o *Options) setDefaults() {
	setDefault(&o.MaxConcurrent, 4)
	setDefault(&o.MaxConcurrentDrift, max(1, o.MaxConcurrent/4))
	setDefault(&o.MaxBatch, 1)
	setDefault(&o.MaxBatchDrift, 1)
	setDefault(&o.MaxPerGroup, max(1, o.MaxConcurrent/2))
	setDefault(&o.MaxPerCredential, max((3*o.MaxConcurrent+3)/4, 3*reserved(o.MaxConcurrent)+1))
	setDefault(&o.Aging, time.Minute)
	setDefault(&o.MaxQueued, 10000)
	setDefault(&o.Deadline, 30*time.Minute)
	setDefault(&o.MinDeadline, 5*time.Minute)
	setDefault(&o.MaxWait, 24*time.Hour)
	setDefault(&o.BookkeepingTimeout, 2*time.Minute)
	setDefault(&o.StopTimeout, 4*time.Minute)
	setDefault(&o.RetryBase, 5*time.Second)
	setDefault(&o.RetryMax, 10*time.Minute)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
}

func (o *Options) maxBatch(operation Operation) int {
	if operation == Drift {
		return o.MaxBatchDrift
	}
	return o.MaxBatch
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// limits returns how the workers are shared out. Below four workers nothing is reserved for an operation, as too few would be left for the
// others; nor may the reserved ones fill what one credential may hold. A single worker can't be kept free from a group.
func (o *Options) limits() limits {
	alone := o.MaxConcurrent
	if alone > 1 {
		alone -= max(1, alone/8)
	}
	return limits{
		workers:       o.MaxConcurrent,
		drift:         o.MaxConcurrentDrift,
		reserved:      min(reserved(o.MaxConcurrent), (o.MaxPerCredential-1)/3),
		perGroup:      min(o.MaxPerGroup, alone),
		perCredential: o.MaxPerCredential,
		alone:         alone,
		aging:         o.Aging,
	}
}

// reserved returns how many of the workers each operation but drift checks has to itself while its runs wait.
func reserved(workers int) int {
	if workers < 4 {
		return 0
	}
	return max(1, workers/8)
}
