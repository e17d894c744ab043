// Package runs executes engine runs in a bounded pool.
//
// A run is one engine operation for one Machine. The pool holds at most one run per [Key]: one per
// Machine, beside its looks. It shares its workers fairly between groups (MachineSets), gives each
// run a deadline, makes the intent durable before anything is executed, and wakes the Machine when
// its run has ended. Callers never block: they submit, return, and reconcile again when woken.
//
// # Who runs next
//
// A free worker takes a run that the caps below allow, by these rules in order:
//
//   - an operation that holds less than its reserved share: an eighth of the workers, at least one,
//     each for destroy, create and update; none below four workers;
//   - the group with the fewest running runs;
//   - the highest priority: destroy, create, update, drift check. A run gains a rank for each
//     Options.Aging (a minute) that it waits.
//
// Towards other groups, a run ages from when its group's last run started or ended; within its
// group, from its submission. Runs of one group, operation and credential start in order.
//
// While others wait, a group may hold Options.MaxPerGroup workers (half) and a credential
// Options.MaxPerCredential (three quarters). If no run below these caps waits, they are lifted: for
// a credential to all workers, for a group to all but an eighth, at least one. With 8 workers a
// group holds 4, or 7 if alone, so that the first run of a second group starts at once even if all
// runs of the first hang. A single worker cannot be kept free. Drift checks hold at most
// Options.MaxConcurrentDrift (a quarter), which one group may fill. That quota is never lifted.
//
// Options.MaxQueued bounds the waiting runs. Destroys have a bound of their own of the same size,
// so that other runs never keep a Machine from being deleted. At the bound, a new run displaces the
// newest run of the largest group of the namespace with the most waiting runs, unless its own
// namespace or group has as many or one less. A displaced run is submitted again when its Machine
// is next reconciled. So no tenant can crowd others out of the queue.
//
// With Options.Memory, the next run waits until it fits beside the running ones, and the others
// wait behind it. The guarantee below then holds with as many workers as runs fit.
//
// # Throttled credentials
//
// A run whose Execute fails with an error that reports Throttled() slows its credential: its runs
// start one by one, not in batches, and none before a pause that doubles with each throttled run
// from Options.RetryBase to Options.RetryMax, and lasts at least as long as Throttled() says. Each
// run that succeeds takes one doubling back and allows one more run at a time, until all workers are
// allowed. This cap is never lifted. It holds for destroys too, since they use the same API, and not
// for runs without a credential.
//
// # Batches
//
// Waiting runs with the same Request.Batch, group, operation and credential may share an execution
// on one worker, which counts as one run. A batch starts when its first run's turn comes. A batch
// that is not full waits for more (see Options.Gather), or the first runs of a burst would take all
// workers. Each run has its own intent, deadline and settlement, and ends when it has settled. The
// worker is free once the last has. A run that ends with ErrAlone waits again behind its group, so
// that a batch holds its worker no longer than a single run does.
//
// # Waiting for the infrastructure
//
// A run whose engine only waits, for a virtual machine to start for example, needs no worker. Its
// task says so by Pool.Idles, and up to Options.MaxIdle such runs, or batches, execute beside those
// that hold workers. They count towards Options.Memory until they end.
//
// # The guarantee
//
// A run releases its worker after a time T at most: its deadline, the engine's shutdown time, twice
// the bookkeeping timeout, and its waits outside this process, such as a queue of the cluster. So
// each of the W workers becomes free at least once within T. The operations' reserved shares take
// at most R of them (three eighths; 3 of 8). The other W-R go to the group with the fewest running
// runs that has waited longest. A group that has had a worker ranks behind one that has waited
// since before.
//
// Hence one other group, whatever its runs do, delays the first run of an idle group by at most T.
// k groups that already wait without a worker take T for each W-R of them: T*ceil((k+1)/(W-R)) in
// all. Newer runs of higher priority may pass for at most its rank times the aging, 3 minutes at
// most. For a run whose credential is at its cap C, replace W-R by C-R; for a drift check, by its
// quota if that is less. A run whose credential is throttled waits for the infrastructure, too.
//
// The further runs of a group follow one another. While another group hangs, the p-th starts within
// T*ceil(p/n), where n is the smaller of the group's cap and what the other's cap leaves (half of
// the workers). A single worker alternates between the two.
package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Operation is the operation of a run.
type Operation string

// The operations, in order of priority.
const (
	Destroy Operation = "destroy"
	Create  Operation = "create"
	Update  Operation = "update"
	Drift   Operation = "drift"
)

var precedence = []Operation{Destroy, Create, Update, Drift}

func (o Operation) rank() int {
	for rank, operation := range precedence {
		if operation == o {
			return rank
		}
	}
	return len(precedence)
}

// ErrQueueFull is returned by Submit if the queue is full and no group has more runs in it than the
// request's.
var ErrQueueFull = errors.New("the queue of engine runs is full")

// ErrStopping is returned by Submit once the pool is stopped. It is also the cause with which
// running tasks are cancelled.
var ErrStopping = errors.New("the manager is stopping")

// ErrDeadline is the cause with which a task is cancelled at its deadline.
var ErrDeadline = errors.New("the run's deadline has passed")

// ErrNotLeader is returned by Submit and Start after Abort. It is also the cause with which running
// tasks are cancelled.
var ErrNotLeader = errors.New("this process is not the leader any more")

// ErrNothingToDo is returned by Task.Intend, possibly wrapped, if no run is needed. The run then
// succeeds without Execute and Settle.
var ErrNothingToDo = errors.New("nothing to do")

// ErrNotSettled is wrapped by the error of a run whose outcome could not be recorded. Its intent
// remains, and its changes may be unsaved. The next run must save them first.
var ErrNotSettled = errors.New("the outcome of the run could not be recorded")

// soon bounds the backoff after an error marked by RetrySoon.
const soon = 30 * time.Second

type soonError struct{ error }

func (e soonError) Unwrap() error { return e.error }

// RetrySoon marks an error of a run that is cheap to repeat while the cause persists.
func RetrySoon(err error) error { return soonError{err} }

// NotSettled marks an error as ErrNotSettled. Task.Settle uses it if saving or recording failed.
func NotSettled(err error) error {
	if err == nil || errors.Is(err, ErrNotSettled) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotSettled, err)
}

// Task is the work of one run. The pool calls Intend, Execute and Settle in this order, once each.
type Task interface {
	// Intend decides, and records durably that the run is about to touch infrastructure. If it
	// fails, nothing is executed or settled; ErrNothingToDo counts as success.
	Intend(ctx context.Context) error
	// Execute does the work. Its context ends at the run's deadline, which Pool.Waits can extend,
	// or when the pool stops.
	Execute(ctx context.Context) error
	// Settle records the outcome and returns the outcome of the run. Its context outlives
	// Execute's, so that cancelled runs are settled, too. It returns NotSettled if recording fails.
	// The pool marks the error itself if Execute succeeded or Settle timed out.
	Settle(ctx context.Context, outcome error) error
}

// Finisher is a Task that is expensive to interrupt at certain times.
type Finisher interface {
	// Finishing reports whether the task should be left to finish when the pool is stopped. It may
	// be called at any time while the task executes.
	Finishing() bool
}

// Memory decides which runs fit into memory, so that none is OOM-killed. The pool never calls its
// methods concurrently.
type Memory interface {
	// Fits reports whether a run may start beside the running ones.
	Fits(footprint string) bool
	// Started and Ended track the running runs.
	Started(run, footprint string)
	Ended(run string)
}

// Reasoner is a Task that explains itself. The pool asks after Intend.
type Reasoner interface {
	// Reason returns one sentence for people, without secrets.
	Reason() string
}

// Key identifies a run in the pool, which holds at most one of each key. The key of a Machine's run is
// the Machine's UID. Looks and searches, which must not delay it, have keys of their own.
type Key string

// Request describes a run to submit.
type Request struct {
	// Machine is woken when the run ends.
	Machine types.NamespacedName
	Key     Key
	// Group is the fair-queuing key, usually the MachineSet's UID.
	Group string
	// Credential names the account that the run uses, usually by the UID of its Secret, or is
	// empty. Runs with the same credential are capped together.
	Credential string
	Operation  Operation
	// Engine labels the run's series, in lower case.
	Engine string
	// Run is the name by which the run's processes are known. Footprint is shared by runs that
	// should need the same amount of memory.
	Run, Footprint string
	// Batch is shared by runs that may be executed together; their tasks are Batchers. It is empty
	// for a run that must be executed alone.
	Batch string
	// Fingerprint identifies the target of the run. After a failure, a run with another fingerprint
	// starts at once, one with the same after a growing backoff.
	Fingerprint string
	// Between marks a run between the attempts of a failing one, whose backoff continues meanwhile.
	Between bool
	// Deadline bounds Execute; zero selects the pool's default. A retry after a timeout gets a
	// shorter one.
	Deadline time.Duration
	Task     Task
}

// Phase is the progress of a run.
type Phase string

// The phases of a run. A succeeded run is forgotten because its effect is in the state. A destroy
// leaves no state, so it is remembered for an hour.
const (
	Queued    Phase = "Queued"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	// Failed means that the run has failed and is not repeated before Status.RetryAt.
	Failed Phase = "Failed"
)

// Status describes the pool's run for a Machine.
type Status struct {
	Operation   Operation
	Phase       Phase
	Fingerprint string
	QueuedAt    time.Time
	StartedAt   time.Time
	EndedAt     time.Time
	// Deadline is how long Execute may take.
	Deadline time.Duration
	// Waiting is the number of waiting runs, or zero if this run does not wait.
	Waiting int
	// Reason is why the run does what it does, once it has decided. It is empty if its task does
	// not say.
	Reason string
	// Waits is what a running run waits for outside this process, or empty.
	Waits string
	// ThrottledSince is when the infrastructure began to throttle the run's credential; zero while
	// the run is running, or if it does not.
	ThrottledSince time.Time
	// Err, Failures and RetryAt describe the last failure; Failures counts consecutive failures.
	Err      error
	Failures int
	RetryAt  time.Time
}

// Active reports whether the run is waiting or running.
func (s Status) Active() bool { return s.Phase == Queued || s.Phase == Running }
