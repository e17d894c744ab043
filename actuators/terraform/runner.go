// Package terraform executes the actuator's runs with OpenTofu or Terraform.
package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

// Backend serves states to engines on this machine. [backend.Server] implements it.
type Backend interface {
	// Start begins to serve. Close waits for current requests.
	Start(ctx context.Context) error
	Close(ctx context.Context) error
	// Open returns an endpoint for a session, OpenStore one for the states of several sessions, and
	// OpenCopy a read-only one for a copy of a state.
	Open(session *state.Session) (backend.Endpoint, error)
	OpenStore(store backend.Store) (backend.Endpoint, error)
	OpenCopy(content []byte) (backend.Endpoint, error)
}

// Runner implements runner.Runner. Engines read and write states through a local endpoint.
type Runner struct {
	engine  *tofu.Engine
	backend Backend
	// batches maps the digests of modules to their form for batches; nil for those without support.
	batches sync.Map
}

var (
	_ runner.Runner          = &Runner{}
	_ runner.InstanceChecker = &Runner{}
	_ runner.Batcher         = &Runner{}
)

// New returns a Runner. Closing it closes the engine and the backend.
func New(with *tofu.Engine, backend Backend) *Runner {
	return &Runner{engine: with, backend: backend}
}

// Start implements runner.Runner.
func (r *Runner) Start(ctx context.Context) error { return r.backend.Start(ctx) }

// Starts implements runner.Runner.
func (r *Runner) Starts() int64 { return r.engine.Starts() }

// Close implements runner.Runner. Interrupted engines save through the backend before it closes.
func (r *Runner) Close(ctx context.Context) error {
	return errors.Join(r.engine.Close(ctx), r.backend.Close(ctx))
}

// AbandonedRuns implements runner.Runner.
func (r *Runner) AbandonedRuns() ([]runner.AbandonedRun, error) {
	var found []runner.AbandonedRun
	for _, one := range r.engine.AbandonedRuns() {
		found = append(found, abandonedRun{one})
	}
	return found, nil
}

// Discard implements runner.Runner.
func (r *Runner) Discard(id string) error { return r.engine.Discard(id) }

// prepare prepares a run's module on first use.
func (r *Runner) prepare(ctx context.Context, run runner.RunSpec) error {
	used := run.Module
	err := r.engine.Prepare(ctx, tofu.Module{
		Digest: used.Digest(), Files: used.Files(), Environment: run.InitEnvironment, Sensitive: run.Sensitive,
	})
	if err != nil {
		return fmt.Errorf("preparing module %s: %w", used.Name(), err)
	}
	return nil
}

// Open implements runner.Runner. It prepares the module on first use.
func (r *Runner) Open(ctx context.Context, run runner.RunSpec) (runner.Workspace, error) {
	if err := r.prepare(ctx, run); err != nil {
		return nil, err
	}
	reached, err := r.serve(run)
	if err != nil {
		return nil, err
	}
	opened, err := r.engine.Open(ctx, specOf(run, reached.Backend))
	if err != nil {
		reached.Close()
		return nil, err
	}
	return &workspace{Workspace: opened, session: run.Session, endpoint: reached}, nil
}

// endpoint is how an engine reaches the state.
type endpoint struct {
	tofu.Backend
	Close func()
}

// serve serves a run's state, or an empty one for a search that only reads.
func (r *Runner) serve(run runner.RunSpec) (endpoint, error) {
	if run.Session == nil && run.Search.Reads() {
		address, stop, err := tofu.EmptyBackend()
		return endpoint{Backend: tofu.Backend{Address: address}, Close: stop}, err
	}
	opened, err := r.backend.Open(run.Session)
	if err != nil {
		return endpoint{}, err
	}
	return endpoint{Close: opened.Close, Backend: backendOf(opened)}, nil
}

func backendOf(opened backend.Endpoint) tofu.Backend {
	return tofu.Backend{
		Address: opened.Address, LockAddress: opened.LockAddress, UnlockAddress: opened.UnlockAddress,
		Username: opened.Username, Password: opened.Password,
	}
}

func specOf(run runner.RunSpec, reached tofu.Backend) tofu.RunSpec {
	id := run.ID
	if run.Search != engine.SearchNone {
		id += "-" + string(run.Search)
	}
	spec := tofu.RunSpec{
		ID: id, Identity: run.Identity, Module: run.Module.Digest(), Variables: run.Variables, Environment: run.Environment,
		Credentials: run.Credentials, Files: run.Files,
		Sensitive: run.Sensitive, Secret: []string{module.VariableUserData}, Search: run.Search, Progress: run.Progress,
		Output:   run.Output,
		Withheld: run.Withheld, Final: run.Module.Final,
		Backend: reached,
	}
	if run.Destroys {
		spec.Bare = bareOf(run)
	}
	return spec
}

// bareOf returns the substitute for a run's module that is not needed, or nil if the providers'
// configuration needs more of the module.
func bareOf(run runner.RunSpec) *tofu.Bare {
	bare := run.Module.Bare()
	if len(bare.HCL) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	_ = json.Unmarshal(run.Variables, &given) // the engine rejects invalid variables
	maps.DeleteFunc(given, func(name string, _ json.RawMessage) bool { return !slices.Contains(bare.Variables, name) })
	variables, _ := json.Marshal(given) // cannot fail
	return &tofu.Bare{HCL: bare.HCL, Variables: variables}
}

// workspace is an open run with the endpoint of its state.
type workspace struct {
	*tofu.Workspace
	session  *state.Session
	endpoint endpoint
}

var _ runner.Workspace = &workspace{}

// Plan implements runner.Workspace.
func (f *workspace) Plan(ctx context.Context) (*engine.Report, error) {
	return f.Workspace.Plan(ctx, tofu.PlanOptions{Out: true, Lock: true, Refresh: true})
}

// Unsaved implements runner.Workspace.
func (f *workspace) Unsaved() bool { return f.ErroredState() != nil }

// Save implements runner.Workspace.
func (f *workspace) Save(ctx context.Context) error {
	unsaved := f.ErroredState()
	if unsaved == nil {
		return nil
	}
	return f.session.Put(ctx, unsaved)
}

// Keep implements runner.Workspace.
func (f *workspace) Keep() error {
	f.endpoint.Close()
	return f.Workspace.Keep()
}

// Close implements runner.Workspace.
func (f *workspace) Close() error {
	f.endpoint.Close()
	return f.Workspace.Close()
}

type abandonedRun struct{ tofu.AbandonedRun }

// ID implements runner.AbandonedRun.
func (l abandonedRun) ID() string { return l.AbandonedRun.ID }

// Identity implements runner.AbandonedRun.
func (l abandonedRun) Identity() json.RawMessage { return l.AbandonedRun.Identity }

// Unsaved implements runner.AbandonedRun. States have a serial, by which the store detects a stale
// one.
func (l abandonedRun) Unsaved([]byte, bool) ([]byte, error) { return l.ErroredState() }
