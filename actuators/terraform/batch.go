package terraform

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// maxUnclear is after how many plans for several Machines, one after another, that said something of none in particular a module is planned for each alone:
// it will always have the engine warn, and each check would be made twice.
const maxUnclear = 3

// calledModule is a module that may be planned for several Machines.
type calledModule struct {
	*batch.Module
	unclear atomic.Int32
}

// called returns how the module of a run is planned for several Machines; nil where it is not.
func (r *Runner) called(used *module.Module) *calledModule {
	if known, ok := r.batches.Load(used.Digest()); ok {
		return known.(*calledModule)
	}
	read, err := batch.NewModule(used.Files())
	var found *calledModule
	if err == nil {
		found = &calledModule{Module: read}
	}
	known, _ := r.batches.LoadOrStore(used.Digest(), found)
	return known.(*calledModule)
}

// clean returns which of the runs of a module a report finds as applied.
func (r *Runner) clean(called *calledModule, digest string, report *engine.Report, count int) []bool {
	asApplied := batch.Clean(report, count)
	if asApplied != nil {
		called.unclear.Store(0)
		return asApplied
	}
	if called.unclear.Add(1) >= maxUnclear {
		r.batches.Store(digest, (*calledModule)(nil))
	}
	return make([]bool, count)
}

// BatchKey implements runner.BatchChecker.
func (r *Runner) BatchKey(run runner.RunSpec) string {
	called := r.called(run.Module)
	if called == nil {
		return ""
	}
	common, err := called.Common(run.Variables)
	if err != nil {
		return ""
	}
	// Maps are written in the order of their keys.
	all, err := json.Marshal([]any{run.Module.Digest(), run.Credentials, run.Environment, run.Files, json.RawMessage(common)})
	if err != nil {
		return ""
	}
	hash := sha256.Sum256(all)
	return hex.EncodeToString(hash[:])
}

// CheckBatch implements runner.BatchChecker.
func (r *Runner) CheckBatch(ctx context.Context, runs []runner.RunSpec) (asApplied []bool, err error) {
	called := r.called(runs[0].Module)
	if called == nil {
		return nil, errors.New("the module cannot be planned for several Machines at once")
	}
	if err := r.prepare(ctx, runs[0]); err != nil {
		return nil, err
	}
	all, stored, err := together(ctx, called, runs)
	if err != nil {
		return nil, err
	}
	opened, err := r.backend.OpenCopy(stored)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	spec := specOf(all, tofu.Backend{Address: opened.Address, Username: opened.Username, Password: opened.Password})
	spec.Batch = &tofu.Batch{Root: called.Root(len(runs)), Folder: batch.Folder, Files: called.Files()}
	workspace, err := r.engine.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, workspace.Close()) }()
	report, err := workspace.Plan(ctx, tofu.PlanOptions{Refresh: true})
	if err != nil {
		return nil, err
	}
	return r.clean(called, runs[0].Module.Digest(), report, len(runs)), nil
}

// together returns one run for several, with the state that it reads. What the engine prints in it is of use to nobody.
func together(ctx context.Context, called *calledModule, runs []runner.RunSpec) (all runner.RunSpec, stored []byte, err error) {
	all = runs[0]
	all.Progress, all.Output, all.Withheld, all.Sensitive = nil, nil, nil, nil
	var variables, states [][]byte
	for _, run := range runs {
		snapshot, err := run.Session.Snapshot(ctx)
		if err != nil {
			return all, nil, fmt.Errorf("reading the states of a batch: %w", err)
		}
		variables, states = append(variables, run.Variables), append(states, snapshot.Raw)
		all.Sensitive = append(all.Sensitive, run.Sensitive...)
	}
	if stored, err = batch.State(states); err != nil {
		return all, nil, err
	}
	all.Variables, err = called.Variables(variables)
	return all, stored, err
}
