// Package runs is the bounded pool in which engine runs happen.
//
// A run is one operation of an engine for one Machine. The pool holds at most one run per Machine, starts destroys before
// creates before updates before drift checks, shares its workers out fairly between groups (MachineSets), gives each run a
// deadline, makes sure that the intent is durable before anything is executed, and wakes the Machine when its run has ended.
// Callers never wait: they submit, go away, and look again when they are woken.
package runs

import (
	"context"
	"errors"
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

// ErrQueueFull is answered by Submit when as many runs wait as the pool may hold.
var ErrQueueFull = errors.New("the queue of engine runs is full")

// ErrStopping is answered by Submit, and is the cause with which running tasks are cancelled, once the pool is told to stop.
var ErrStopping = errors.New("the manager is stopping")

// ErrDeadline is the cause with which a task is cancelled that has used up its time.
var ErrDeadline = errors.New("the run's deadline has passed")

// Task is the work of one run. The pool calls Intend, Execute and Settle in this order, each once.
type Task interface {
	// Intend records durably that the run is about to touch infrastructure. When it fails, nothing is executed or settled.
	Intend(ctx context.Context) error
	// Execute does the work. Its context ends at the run's deadline or when the pool stops.
	Execute(ctx context.Context) error
	// Settle records the outcome. Its context outlives Execute's, so that a cancelled run is settled as well. What it answers
	// is the outcome of the run.
	Settle(ctx context.Context, outcome error) error
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
	// Fingerprint identifies what the run is asked to reach. A failed run is repeated at once when it differs, else after a
	// pause that grows with every failure.
	Fingerprint string
	// Deadline bounds Execute; zero takes the pool's default.
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
	// Err, Failures and RetryAt describe the last failure; Failures counts failures in a row.
	Err      error
	Failures int
	RetryAt  time.Time
}

// Active reports whether the run waits or runs.
func (s Status) Active() bool { return s.Phase == Queued || s.Phase == Running }
