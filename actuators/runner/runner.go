// Package runner defines the interface between the actuator and an engine. A Runner executes a run
// for one Machine and lists the runs that a dead process left behind.
package runner

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Runner executes runs with one engine.
type Runner interface {
	// Start prepares the engine. It is called before anything else.
	Start(ctx context.Context) error
	// AbandonedRuns returns the runs that a dead process left behind. None of their processes is
	// still running.
	AbandonedRuns() ([]AbandonedRun, error)
	// Discard removes the remains of a run.
	Discard(id string) error
	// Open prepares a run and waits for a free slot. Close or Keep the Workspace afterwards. An
	// engine's error is a [failure.Error].
	Open(ctx context.Context, r RunSpec) (Workspace, error)
	// Starts returns the number of CLI processes started so far.
	Starts() int64
	// Close waits until every run is closed, and stops what Start began.
	Close(ctx context.Context) error
}

// InstanceChecker is a Runner that can check an instance's existence at less cost than a plan.
type InstanceChecker interface {
	// CheckInstance lets the provider read only the instance's resource, based on a copy of the
	// Machine's state, and reports whether it is gone. It locks and writes nothing. After an error,
	// nothing is known.
	CheckInstance(ctx context.Context, r RunSpec, stored []byte) (gone bool, err error)
}

// Batcher is a Runner that executes several runs together at less cost than one by one.
type Batcher interface {
	// BatchKey returns a key shared by runs that can be batched, derived from their Module,
	// Variables, Environment, Files and Credentials. It is empty for a run that must be executed
	// alone.
	BatchKey(r RunSpec) string
	// Batch returns one Share per run. The runs have the same key and operation.
	Batch(runs int) []Share
}

// Share is the part of one run in a batch.
type Share interface {
	// Open opens the run's Workspace for one operation: a Plan, an Apply or a Destroy. The
	// operation blocks until each of the others has reached its own or left. One process then
	// executes them all. The report is the same as for the run alone, except that a Plan without an
	// error means that the instance is as applied. After [ErrAlone] the run must be repeated alone.
	Open(ctx context.Context, r RunSpec) (Workspace, error)
	// CheckInstance is [InstanceChecker]'s method for the whole batch. It blocks as the operations
	// of Open's Workspace do.
	CheckInstance(ctx context.Context, r RunSpec, stored []byte) (gone bool, err error)
	// Leave withdraws the run from the batch, even if it never opened a Workspace. The others no
	// longer wait for it.
	Leave()
}

// ErrAlone is the error of a batched operation that must be repeated alone. Whatever it created is
// in the run's state.
var ErrAlone = errors.New("the run must be repeated alone")

// RunSpec describes one use of a module for one Machine.
type RunSpec struct {
	// ID is unique among the open and abandoned runs. Only a search shares the ID of its run.
	ID string
	// Identity is stored with the run as JSON, to identify its remains after a crash. It contains
	// no secrets.
	Identity any
	Module   *module.Module
	// Session gives access to the Machine's state, which the run reads and writes. It is nil for looks
	// and searches that only read.
	Session *state.Session
	// Lineage is the lineage of the Machine's states, for an engine whose states have none.
	Lineage string
	// Variables are the module's variables as one JSON object. Its strings are data, never
	// templates.
	Variables []byte
	// Environment is added to the engine's environment: credentials, and how to reach the
	// infrastructure.
	Environment map[string]string
	// Credentials names the Secret with the credentials, or is empty.
	Credentials string
	// InitEnvironment is the part of Environment needed to initialize the module: proxies,
	// certificate authorities, endpoints.
	InitEnvironment map[string]string
	// Files are readable only by the engine and removed with the run. The variables refer to them
	// by path.
	Files map[string]string
	// Sensitive are strings that must not appear in any report.
	Sensitive []string
	// Search makes the run find an instance that the state lacks and import it.
	Search engine.Search
	// Destroys marks a Workspace for a Destroy only. The engine then gets the state, the providers
	// and their configuration, but nothing else of the module: see [module.Module.Bare].
	Destroys bool
	// NotFound reports that a lookup of this run found nothing, although the state says that an
	// earlier run began to create something.
	NotFound bool
	// Waits receives what the run waits for outside this process before its engine starts, such as
	// a queue of the cluster, and "" when the wait ends. It may be nil and must not block.
	Waits func(what string)
	// Progress receives the engine's events as they happen. It may be nil and must not block.
	Progress func(engine.Event)
	// Output receives the engine's messages for people, without sensitive strings. Withheld
	// receives the messages that are kept from Output because they may contain values of sensitive
	// inputs. Neither may block.
	Output, Withheld func(text string)
}

// Workspace is an open run. Its methods run one engine process at a time. Each returns a report,
// even with an error.
type Workspace interface {
	// Plan refreshes and plans without changing anything. The plan is kept for ApplyPlan.
	// [IsNotFound] recognizes the error of a lookup that finds nothing.
	Plan(ctx context.Context) (*engine.Report, error)
	// Planned returns the details of the kept plan that the report lacks. Call it after Plan.
	Planned(ctx context.Context) (*engine.PlannedObjects, error)
	// Apply plans and applies without a check of the plan. Use it only if the plan can do nothing
	// but create.
	Apply(ctx context.Context) (*engine.Report, error)
	// ApplyPlan applies the plan kept by Plan, and nothing else.
	ApplyPlan(ctx context.Context) (*engine.Report, error)
	// Destroy destroys everything in the state.
	Destroy(ctx context.Context) (*engine.Report, error)
	// Unsaved reports whether a readable state could not be saved. Save it before closing the run:
	// it may be the only record of an object.
	Unsaved() bool
	Save(ctx context.Context) error
	// Keep leaves the unsaved state to AbandonedRuns of the next process, without the run's
	// secrets. Close is then a no-op.
	Keep() error
	// Close removes the run's files and frees its slot. It may be called repeatedly.
	Close() error
}

// AbandonedRun is a run whose process died before the run was closed.
type AbandonedRun interface {
	ID() string
	// Identity returns the run's Identity as JSON, or nil if nothing was executed yet.
	Identity() json.RawMessage
	// Unsaved returns the state that the run did not save, or nil. It may be truncated. stored is
	// the stored state. holds reports whether this run still holds the lock, so that nothing has
	// written the state since.
	Unsaved(stored []byte, holds bool) ([]byte, error)
}

// IsNotFound reports whether an error of a search means that the object does not exist. Every
// diagnostic in it must say so. It is false for a search that matches several objects, or that the
// module lacks.
func IsNotFound(err error, used *module.Module, search engine.Search) bool {
	var says func(message string) bool
	switch spec := used.Spec(); {
	case search == engine.SearchLookup && spec.Lookup != nil:
		says = used.Absent
	case search == engine.SearchAdopt && spec.Adopt != nil:
		says = used.AdoptAbsent
	default:
		return false
	}
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return false
	}
	if len(failed.Diagnostics) == 0 {
		return failed.Class == failure.ImportMissing
	}
	for _, diagnostic := range failed.Diagnostics {
		missing := failure.Classify([]failure.Diagnostic{diagnostic}, nil) == failure.ImportMissing &&
			!ofAnother(diagnostic, used)
		if !missing && !says(diagnostic.Summary+": "+diagnostic.Detail) {
			return false
		}
	}
	return true
}

// importTarget matches the import address in OpenTofu's and Terraform's error about a missing
// object.
var importTarget = regexp.MustCompile(`import\s+an\s+existing\s+object\s+to\s+("(?:[^"\\]|\\.)*")`)

// ofAnother reports whether another object than the instance is missing, so that the instance may
// still exist.
func ofAnother(missing failure.Diagnostic, used *module.Module) bool {
	named := importTarget.FindStringSubmatch(missing.Detail)
	if named == nil {
		return false
	}
	address, err := strconv.Unquote(named[1])
	return err == nil && !used.MayBeInstance(address)
}
