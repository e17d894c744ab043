// Package pulumi executes the actuator's runs with Pulumi.
package pulumi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// Keys encrypt the secrets in checkpoints.
type Keys interface {
	// Current returns the key for new checkpoints.
	Current(ctx context.Context) (*pulumi.Key, error)
	// For returns the key with a salt, for existing checkpoints.
	For(ctx context.Context, salt string) (*pulumi.Key, error)
}

// Runner implements runner.Runner. Each checkpoint that Pulumi writes is stored in the Machine's
// state at once.
type Runner struct {
	engine *pulumi.Engine
	keys   Keys
}

var _ runner.Runner = &Runner{}

// New returns a Runner. Closing it closes the engine.
func New(with *pulumi.Engine, keys Keys) *Runner { return &Runner{engine: with, keys: keys} }

// Start implements runner.Runner.
func (r *Runner) Start(context.Context) error { return nil }

// Starts implements runner.Runner.
func (r *Runner) Starts() int64 { return r.engine.Starts() }

// Close implements runner.Runner.
func (r *Runner) Close(ctx context.Context) error { return r.engine.Close(ctx) }

// identity is stored with a run: its owner and the lineage of the Machine's states.
type identity struct {
	Lineage string `json:"lineage"`
	Of      any    `json:"of"`
}

// AbandonedRuns implements runner.Runner.
func (r *Runner) AbandonedRuns() ([]runner.AbandonedRun, error) {
	left, err := r.engine.AbandonedRuns()
	if err != nil {
		return nil, err
	}
	var found []runner.AbandonedRun
	for _, one := range left {
		read := abandonedRun{of: one}
		if len(one.Identity) > 0 {
			whose := identity{Of: &read.identity}
			if err := json.Unmarshal(one.Identity, &whose); err != nil {
				return nil, fmt.Errorf("reading the identity of the abandoned run %s: %w", one.ID, err)
			}
			read.lineage = whose.Lineage
		}
		found = append(found, read)
	}
	return found, nil
}

// Discard implements runner.Runner.
func (r *Runner) Discard(id string) error { return r.engine.Discard(id) }

// Open implements runner.Runner.
func (r *Runner) Open(ctx context.Context, run runner.RunSpec) (runner.Workspace, error) {
	states := store{session: run.Session, lineage: run.Lineage}
	checkpoint, err := states.load(ctx)
	if err != nil {
		return nil, err
	}
	if run.NotFound && checkpoint != nil {
		if checkpoint, err = pulumi.Adopt(checkpoint, nil); err != nil {
			return nil, err
		}
	}
	key, err := r.keys.Current(ctx)
	if err != nil {
		return nil, err
	}
	if checkpoint, err = r.rekeyed(ctx, states, checkpoint, key); err != nil {
		return nil, err
	}
	described, err := specOf(run, checkpoint, key)
	if err != nil {
		return nil, err
	}
	described.Save = states.save
	if run.Search != engine.SearchNone {
		return &lookupWorkspace{engine: r.engine, search: run.Search, run: described, states: states}, nil
	}
	opened, err := r.engine.Open(ctx, described)
	if err != nil {
		return nil, err
	}
	return &workspace{Workspace: opened, states: states}, nil
}

// specOf converts the run for the engine.
func specOf(run runner.RunSpec, checkpoint []byte, key *pulumi.Key) (pulumi.RunSpec, error) {
	variables, err := configuration(run)
	if err != nil {
		return pulumi.RunSpec{}, err
	}
	return pulumi.RunSpec{
		ID: run.ID, Identity: identity{Lineage: run.Lineage, Of: run.Identity}, Project: run.Module.Name(),
		Program:   run.Module.Files(),
		Variables: variables, Secret: []string{module.VariableUserData}, Environment: run.Environment,
		Credentials: run.Credentials, Files: run.Files, Key: key,
		Checkpoint: checkpoint, Sensitive: run.Sensitive, Progress: run.Progress, Output: run.Output, Withheld: run.Withheld,
		Final: run.Module.Final, Destroys: run.Destroys,
	}, nil
}

// rekeyed returns a checkpoint whose secrets are encrypted with the given key. It stores the
// checkpoint if they were not. Drift checks write nothing else and reach every Machine, so this is
// where keys are rotated.
func (r *Runner) rekeyed(ctx context.Context, states store, checkpoint []byte, key *pulumi.Key) ([]byte, error) {
	if checkpoint == nil {
		return nil, nil
	}
	salt, err := pulumi.SaltOf(checkpoint)
	if err != nil || salt == "" || salt == key.Salt() {
		return checkpoint, err
	}
	old, err := r.keys.For(ctx, salt)
	if err != nil {
		return nil, err
	}
	if checkpoint, err = pulumi.Rekey(checkpoint, old, key); err != nil {
		return nil, err
	}
	return checkpoint, states.save(ctx, checkpoint)
}

// configuration returns the program's configuration: the variables and the computed locals. A
// destroy runs no program.
func configuration(run runner.RunSpec) ([]byte, error) {
	if run.Destroys {
		return []byte("{}"), nil
	}
	locals, err := run.Module.Locals(run.Variables)
	if err != nil {
		return nil, &failure.Error{Op: failure.OpOpen, Class: failure.InvalidConfiguration, Err: err}
	}
	if locals == nil {
		return run.Variables, nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(run.Variables, &values); err != nil {
		return nil, errors.New("the run's variables are not a JSON object")
	}
	values[module.ConfigLocals] = locals
	return json.Marshal(values)
}

// workspace is an open run.
type workspace struct {
	*pulumi.Workspace
	states store
	// changed are the names of the properties that the plan changes, by address.
	changed map[string][]string
}

var _ runner.Workspace = &workspace{}

// Plan implements runner.Workspace.
func (f *workspace) Plan(ctx context.Context) (*engine.Report, error) {
	report, err := f.Workspace.Plan(ctx)
	f.changed = map[string][]string{}
	for _, change := range report.Changes {
		if change.Action == engine.ActionUpdate {
			f.changed[change.Address] = strings.Split(change.Reason, ", ") // for an update, Reason lists the properties
		}
	}
	return report, err
}

// Planned implements runner.Workspace. Only a lookup imports, and previews show no values.
func (f *workspace) Planned(context.Context) (*engine.PlannedObjects, error) {
	return &engine.PlannedObjects{Changed: f.changed}, nil
}

// Unsaved implements runner.Workspace.
func (f *workspace) Unsaved() bool { return f.Workspace.Unsaved() != nil }

// Save implements runner.Workspace.
func (f *workspace) Save(ctx context.Context) error {
	unsaved := f.Workspace.Unsaved()
	if unsaved == nil {
		return nil
	}
	return f.states.save(ctx, unsaved)
}

// abandonedRun is the remains of a run.
type abandonedRun struct {
	of       pulumi.AbandonedRun
	identity json.RawMessage
	lineage  string
}

// ID implements runner.AbandonedRun.
func (l abandonedRun) ID() string { return l.of.ID }

// Identity implements runner.AbandonedRun.
func (l abandonedRun) Identity() json.RawMessage { return l.identity }

// Unsaved implements runner.AbandonedRun. Checkpoints have no serial, so only the lock proves that
// the stored one is older.
func (l abandonedRun) Unsaved(stored []byte, holds bool) ([]byte, error) {
	if l.of.Checkpoint == nil || !holds {
		return nil, nil
	}
	var serial uint64
	if stored != nil {
		have, err := statefile.ParseCheckpoint(stored)
		if err != nil {
			return nil, err
		}
		serial = have.Serial
	}
	return statefile.Checkpoint{Serial: serial + 1, Lineage: l.lineage, Raw: l.of.Checkpoint}.Encode()
}
