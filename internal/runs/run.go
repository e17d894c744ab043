// Package runs is the bounded pool in which engine runs happen.
//
// A run is one operation of an engine for one Machine. The pool holds at most one run per Machine, shares its workers out fairly
// between groups (MachineSets), gives each run a deadline, makes sure that the intent is durable before anything is executed, and
// wakes the Machine when its run has ended. Callers never wait: they submit, return, and reconcile again when they are woken.
//
// # Who runs next
//
// A free worker takes, among the runs that the caps below allow, one of an operation that holds less than its reserved share (an
// eighth of the workers, at least one, each for destroy, create and update; nothing below four workers); among these one of the
// group with the fewest running runs; among these the one of the highest precedence: destroy before create before update before
// drift check, where a run gains a rank for each Options.Aging (a minute) that it waits. Towards other groups a run ages from when its
// group's last run started or ended, within its group from when it was submitted. Runs of one group, operation and credential start in their order.
//
// While others wait, a group may hold Options.MaxPerGroup workers (half) and a credential Options.MaxPerCredential (three quarters).
// When nobody waits who is below these caps they are lifted, for a credential to all workers, for a group to all but an eighth, at
// least one: with 8 workers a group holds 4, alone 7, so that the first run of a second group starts at once although all of the
// first one's hang. With one worker there is none to keep free. Drift checks hold Options.MaxConcurrentDrift at most (a quarter), which one
// group may fill. A quota is never lifted.
//
// Where there is Options.Memory, the run whose turn it is waits until it fits beside those that run, and the others wait behind it. The guarantee
// holds then with as many workers as runs fit.
//
// # Batches
//
// Runs with the same Request.Batch that wait in one group, for the same operation and with the same credential, may be executed together by one worker, which
// counts as one run. They begin when the turn of the first of them comes, and nothing waits for more of them. Each has its own intent, deadline and settlement; the worker is free once the last
// has settled. One whose outcome is ErrAlone waits again, behind its group's, so that a batch holds its worker no longer than one run does.
//
// # The guarantee
//
// A run gives its worker back after T at the latest: its deadline, what the engine needs to end when it is interrupted, twice the
// bookkeeping timeout, and what it waits for things outside of this process, such as a queue of the cluster. So each of the W workers becomes free at least once within any time T. The reserved shares of the operations take R of
// them at most (three eighths; 3 of 8), the other W-R go to the group with the fewest running runs that waited longest. A group that
// has had a worker stands behind one that waits since before. Hence the first run of a group of which nothing runs is never
// kept waiting for longer than T by one other group, whatever that one's runs do, and k groups that wait already and have no
// worker either take T for each W-R of them: T*ceil((k+1)/(W-R)) in all. To that comes the time in which newer runs of higher
// precedence may still pass: its rank times the aging, 3 minutes at most. For a run whose credential is at its cap C, C-R stands for W-R; for a
// drift check, its quota does if that is less. The further runs of a group follow one another: while another group hangs, the
// p-th starts within T*ceil(p/n), where n is the group's cap or what the other one's leaves, if that is less (half of the workers).
// A single worker takes them alternately.
package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Operation is what a run does.
type Operation string

// The operations, in the order in which waiting runs are started.
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

// ErrQueueFull is returned by Submit when as many runs wait as the pool may hold.
var ErrQueueFull = errors.New("the queue of engine runs is full")

// ErrStopping is returned by Submit, and is the cause with which running tasks are cancelled, once the pool is stopped.
var ErrStopping = errors.New("the manager is stopping")

// ErrDeadline is the cause with which a task is cancelled that has used up its time.
var ErrDeadline = errors.New("the run's deadline has passed")

// ErrNotLeader is returned by Submit and Start, and is the cause with which running tasks are cancelled, after Abort.
var ErrNotLeader = errors.New("this process is not the leader any more")

// ErrNothingToDo is returned by Task.Intend, wrapped or not, when the facts ask for no run. The run ends well, without Execute and Settle.
var ErrNothingToDo = errors.New("nothing to do")

// ErrNotSettled is in the error of a run whose outcome could not be recorded: its intent stands, and what it changed may be
// unsaved. Its next run must save that first.
var ErrNotSettled = errors.New("the outcome of the run could not be recorded")

// NotSettled marks an error as ErrNotSettled. Task.Settle uses it where saving or recording failed.
func NotSettled(err error) error {
	if err == nil || errors.Is(err, ErrNotSettled) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotSettled, err)
}

// Task is the work of one run. The pool calls Intend, Execute and Settle in this order, each once.
type Task interface {
	// Intend decides, and records durably that the run is about to touch infrastructure. When it fails, nothing is executed or
	// settled; with ErrNothingToDo that is a success.
	Intend(ctx context.Context) error
	// Execute does the work. Its context ends at the run's deadline, which Pool.Waits can put off, or when the pool stops.
	Execute(ctx context.Context) error
	// Settle records the outcome. Its context outlives Execute's, so that a cancelled run is settled as well. What it returns
	// is the outcome of the run. Where recording fails it returns NotSettled; the pool marks an error so by itself when Execute had
	// succeeded or Settle's time was up.
	Settle(ctx context.Context, outcome error) error
}

// Memory says what runs fit into it, so that none is killed for want of it. The pool calls its methods one at a time.
type Memory interface {
	// Fits reports whether a run may start beside those that run.
	Fits(footprint string) bool
	// Started and Ended say which runs there are.
	Started(run, footprint string)
	Ended(run string)
}

// Reasoner is a Task that says why it does what it does. It is asked after Intend.
type Reasoner interface {
	// Reason returns one sentence for people, without secrets.
	Reason() string
}

// Request asks for a run.
type Request struct {
	// Machine is woken when the run ends.
	Machine types.NamespacedName
	UID     types.UID
	// Group is what runs are shared out fairly between, usually the MachineSet's UID.
	Group string
	// Credential names the account that the run uses, usually the UID of its Secret; runs with the same one are capped together.
	// Empty for none.
	Credential string
	Operation  Operation
	// Engine is what the run's series are named after, in lower case.
	Engine string
	// Run is the name that the run's processes are known by, and Footprint that of all runs which are expected to take as much memory.
	Run, Footprint string
	// Batch is the same for runs that may be executed together; their tasks are Batchers. Empty for one that is executed alone.
	Batch string
	// Fingerprint identifies what the run is asked to reach. A failed run is repeated at once when it differs, else after a
	// pause that grows with every failure.
	Fingerprint string
	// Deadline bounds Execute; zero takes the pool's default. A repeat of a run that used it up gets a shorter one.
	Deadline time.Duration
	Task     Task
}

// Phase is how far a run has come.
type Phase string

// The phases of a run. One that has succeeded is forgotten, as its effect is in the state; but for a destroy, after which there is
// no state: it is remembered for an hour.
const (
	Queued    Phase = "Queued"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	// Failed means that the run has ended with an error and is not repeated before Status.RetryAt.
	Failed Phase = "Failed"
)

// Status describes the run that the pool holds for a Machine.
type Status struct {
	Operation   Operation
	Phase       Phase
	Fingerprint string
	QueuedAt    time.Time
	StartedAt   time.Time
	EndedAt     time.Time
	// Deadline is how long Execute may take.
	Deadline time.Duration
	// Waiting is how many runs wait with it; zero for one that does not wait.
	Waiting int
	// Reason is why the run does what it does, from when it has decided; empty when its task does not say.
	Reason string
	// Waits is what the run waits for outside of this process while it runs; empty for nothing.
	Waits string
	// Err, Failures and RetryAt describe the last failure; Failures counts failures in a row.
	Err      error
	Failures int
	RetryAt  time.Time
}

// Active reports whether the run waits or runs.
func (s Status) Active() bool { return s.Phase == Queued || s.Phase == Running }
