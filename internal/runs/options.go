package runs

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Options configures a Pool. Zero values select the defaults.
type Options struct {
	// MaxConcurrent bounds the runs that execute at once; default 4.
	MaxConcurrent int
	// MaxIdle bounds the further runs, or batches, that only wait for the infrastructure, see
	// Pool.Idles; default none.
	MaxIdle int
	// MaxConcurrentDrift bounds the drift checks among them; default a quarter, at least one.
	MaxConcurrentDrift int
	// MaxBatch bounds the runs with the same Request.Batch that share an execution, MaxBatchDrift
	// the drift checks. The default is 1: no batches.
	MaxBatch, MaxBatchDrift int
	// Gather is how long a batch that is not full waits for one more run before it starts, four times
	// that in all; default 0. It doubles with each batch of the same kind that is executed, up to
	// four times.
	Gather time.Duration
	// MaxPerGroup bounds the workers of one group while others wait; default half of them, at least
	// one. A group that waits alone may hold more, but leaves an eighth of the workers, at least
	// one, for the next group.
	MaxPerGroup int
	// MaxPerCredential bounds the workers of one credential while others wait; default three
	// quarters, rounded up. No worker is held back for other credentials.
	MaxPerCredential int
	// Aging is how long a run waits to gain one rank of priority; default one minute.
	Aging time.Duration
	// MaxQueued bounds the waiting destroys and, separately, all other waiting runs; default 10000.
	// At the bound, a run displaces the newest run of the largest group.
	MaxQueued int
	// Deadline bounds a run's Execute if the request sets none; default 30 minutes.
	Deadline time.Duration
	// MinDeadline is the minimum to which the deadline of a run that keeps timing out is halved;
	// default 5 minutes.
	MinDeadline time.Duration
	// MaxWait bounds a run's wait for something outside this process, see Pool.Waits; default 24
	// hours.
	MaxWait time.Duration
	// BookkeepingTimeout bounds Intend and Settle each; default 2 minutes.
	BookkeepingTimeout time.Duration
	// StopGrace is how long finishing tasks may continue once the pool is stopped; default none.
	StopGrace time.Duration
	// StopTimeout bounds how long Start waits for cancelled tasks; default 4 minutes.
	StopTimeout time.Duration
	// RetryBase is the backoff after the first failure. It doubles with each failure up to
	// RetryMax. Defaults: 5 seconds, 10 minutes.
	RetryBase, RetryMax time.Duration

	// Memory limits the runs by their memory; nil for no limit.
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

// limits returns how the workers are shared out. With fewer than four workers none are reserved for
// an operation, since too few would remain for the others. The reserved ones must not use up what
// one credential may hold. A single worker cannot be kept free from a group.
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

// reserved returns how many workers each operation except drift checks has to itself while its runs
// wait.
func reserved(workers int) int {
	if workers < 4 {
		return 0
	}
	return max(1, workers/8)
}
