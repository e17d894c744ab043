// Package runner defines what an engine must do for the actuator: carry out a run for one Machine, and list the runs that a process which
// died has left behind.
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

// Runner carries out runs with one engine.
type Runner interface {
	// Start begins to serve what runs need. It is called before anything else.
	Start(ctx context.Context) error
	// AbandonedRuns returns the runs that a process which died has left behind. Nothing of them is running any more.
	AbandonedRuns() ([]AbandonedRun, error)
	// Discard removes what is left of a run.
	Discard(id string) error
	// Open makes a run ready, and waits for a free slot. The Workspace must be closed or kept. An error of the engine is an [failure.Error].
	Open(ctx context.Context, r RunSpec) (Workspace, error)
	// Starts counts the processes of the engine's CLI that were started so far.
	Starts() int64
	// Close waits until every run is closed, and ends what Start began.
	Close(ctx context.Context) error
}

// InstanceChecker is a Runner that can look whether an instance is still there, at less cost than by a plan.
type InstanceChecker interface {
	// CheckInstance has the provider read the one resource that is the instance, as a copy of the Machine's state knows it, and reports whether it is gone.
	// hcl takes the place of the module's: see [module.Module.InstanceCheck]. Nothing is locked or written. With an error, nothing is known.
	CheckInstance(ctx context.Context, r RunSpec, hcl, stored []byte) (gone bool, err error)
}

// Batcher is a Runner that can carry several runs out at once, at less cost than one by one.
type Batcher interface {
	// BatchKey returns what is the same for runs that may be carried out together, as far as it is in their Module, Variables, Environment, Files and Credentials; empty
	// for a run that is carried out alone.
	BatchKey(r RunSpec) string
	// Batch returns one Share for each of so many runs, with the same key and for the same operation.
	Batch(runs int) []Share
}

// Share is the part of one run in a batch.
type Share interface {
	// Open opens the run's Workspace, for one operation: a Plan, an Apply or a Destroy. That waits until each of the others has come to its own or has left, and then one process
	// carries them all out. What it reports is what the run alone would report, but that a Plan without an error has found the instance as applied. With [ErrAlone], the run has to
	// be repeated alone.
	Open(ctx context.Context, r RunSpec) (Workspace, error)
	// CheckInstance does what an [InstanceChecker] does, for all at once as Open's Workspace does. hcl is the same for all of them.
	CheckInstance(ctx context.Context, r RunSpec, hcl, stored []byte) (gone bool, err error)
	// Leave is called when the run needs its share no more, also where it has opened no Workspace. The others do not wait for it from then on.
	Leave()
}

// ErrAlone is the error of a share's operation that has to be repeated alone. Whatever it has made is in the run's state.
var ErrAlone = errors.New("the run is to be repeated alone")

// RunSpec describes one use of a module for one Machine.
type RunSpec struct {
	// ID is unique among the runs that are open or abandoned, but for a search and the run that it belongs to.
	ID string
	// Identity is kept with the run as JSON, for whoever finds what it left after a crash. No secrets.
	Identity any
	Module   *module.Module
	// Session holds the Machine's state. The run reads and writes it. Nil for an inventory, which is planned and nothing else.
	Session *state.Session
	// Lineage is that of the Machine's states, for an engine whose states have none.
	Lineage string
	// Variables are the module's: one JSON object. Its strings are data, never templates.
	Variables []byte
	// Environment is added to the engine's: credentials, and how the infrastructure is reached.
	Environment map[string]string
	// Credentials names the Secret that the credentials are from; empty for none.
	Credentials string
	// InitEnvironment is the part of Environment that initialising the module needs: proxies, certificate authorities, endpoints.
	InitEnvironment map[string]string
	// Files are written for the engine alone, and removed with the run. Their paths are in the variables that they are named by.
	Files map[string]string
	// Sensitive are strings that must not show in anything that is reported.
	Sensitive []string
	// Search has the run find an instance that the state lacks, and bring it into the state.
	Search engine.Search
	// NotFound says that a lookup of this run has found nothing: what an earlier run had begun to make, as its state says, is not there.
	NotFound bool
	// Waits receives what the run waits for outside of this process before its engine works, such as a queue of the cluster; nothing when it goes on.
	// Nil for nobody. It must not block.
	Waits func(what string)
	// Progress receives what the engine does while it does it. It must not block.
	Progress func(engine.Event)
	// Output receives what the engine prints for people, message by message, free of sensitive strings. It must not block. Withheld receives the
	// messages whose text is withheld from Output, since they may hold values of sensitive inputs all the same.
	Output, Withheld func(text string)
}

// Workspace is an open run. Its methods run one engine at a time; each returns a report, also with an error.
type Workspace interface {
	// Plan asks the infrastructure, plans, and changes nothing. The plan is kept for ApplyPlan. Where a lookup finds nothing, [IsNotFound]
	// knows the error.
	Plan(ctx context.Context) (*engine.Report, error)
	// Planned returns what the plan that was kept holds beyond its report. It is called after Plan.
	Planned(ctx context.Context) (*engine.PlannedObjects, error)
	// Apply plans and carries the plan out unread. Use it where it can only create.
	Apply(ctx context.Context) (*engine.Report, error)
	// ApplyPlan carries out the plan that Plan kept, and nothing else.
	ApplyPlan(ctx context.Context) (*engine.Report, error)
	// Destroy destroys everything that the state knows.
	Destroy(ctx context.Context) (*engine.Report, error)
	// Unsaved reports whether there is a state that could not be saved. Save must save it before the run is closed: it may be all that
	// is known of an object.
	Unsaved() (bool, error)
	// Save saves a state that could not be saved.
	Save(ctx context.Context) error
	// Keep leaves the state that could not be saved to AbandonedRuns of the next process, without the run's secrets. Close does nothing then.
	Keep() error
	// Close removes what the run has, and gives its slot to another. It may be called again.
	Close() error
}

// AbandonedRun is a run whose process died before the run was closed.
type AbandonedRun interface {
	// ID is the run's.
	ID() string
	// Identity is the run's as JSON; nil where nothing was run yet.
	Identity() json.RawMessage
	// Unsaved returns the state that the run did not save, nil for none. Stored is the one that is stored, and holds says whether its
	// lock is still this run's, so that nobody has written it since.
	Unsaved(stored []byte, holds bool) ([]byte, error)
}

// IsNotFound reports whether an error of a search says that there is no such object. Every error in it must say so: where one says anything else,
// nothing is known. It is false for a search that finds no single object, or that the module does not have.
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
		missing := failure.Classify([]failure.Diagnostic{diagnostic}, nil) == failure.ImportMissing && !ofAnother(diagnostic, used)
		if !missing && !says(diagnostic.Summary+": "+diagnostic.Detail) {
			return false
		}
	}
	return true
}

// importTarget matches the address that OpenTofu and Terraform name where there is nothing to import for it.
var importTarget = regexp.MustCompile(`import\s+an\s+existing\s+object\s+to\s+("(?:[^"\\]|\\.)*")`)

// ofAnother reports whether what is missing is another object than the instance, which may be there all the same.
func ofAnother(missing failure.Diagnostic, used *module.Module) bool {
	named := importTarget.FindStringSubmatch(missing.Detail)
	if named == nil {
		return false
	}
	address, err := strconv.Unquote(named[1])
	return err == nil && !used.MayBeInstance(address)
}
