package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

// opening is what a process is given of its run.
type opening struct {
	// Settings are those of the engine, for whoever makes it.
	Settings []byte `json:"settings,omitempty"`
	// Beat is how often the process asks whether its manager leads.
	Beat time.Duration `json:"beat"`
	// Life is for how long after it has asked the engine lives on.
	Life time.Duration `json:"life"`

	ID              string            `json:"id"`
	Identity        json.RawMessage   `json:"identity,omitempty"`
	Module          snapshot.Files    `json:"module"`
	Digest          string            `json:"digest"`
	Lineage         string            `json:"lineage,omitempty"`
	Variables       []byte            `json:"variables"`
	Environment     map[string][]byte `json:"environment,omitempty"`
	Credentials     string            `json:"credentials,omitempty"`
	InitEnvironment map[string][]byte `json:"initEnvironment,omitempty"`
	Files           map[string][]byte `json:"files,omitempty"`
	Sensitive       [][]byte          `json:"sensitive,omitempty"`
	Search          engine.Search     `json:"search,omitempty"`
	NotFound        bool              `json:"notFound,omitempty"`

	// State is the path of the state, empty for a run that has none; Username and Password open it. Locks says whether the engine locks it.
	State              string `json:"state,omitempty"`
	Username, Password string `json:",omitempty"`
	Locks              bool   `json:"locks,omitempty"`
	// Check is the HCL of a look at the instance, which is all that the process does then.
	Check []byte `json:"check,omitempty"`
}

// OpenOptions say how a run is opened in a process.
type OpenOptions struct {
	// Settings are given to whoever makes the engine there. They may hold secrets.
	Settings []byte
	// State is where this process serves the run's state; zero for a run without one.
	State backend.Endpoint
	// Life is how long the engine lives after its manager was last known to lead.
	Life time.Duration
	// Patience is how long an interrupted engine may take to save its state and be killed.
	Patience time.Duration
	// Lost is called when the process has ended, or cannot be reached, before it has reported how an operation ended. It returns when the
	// engine can act no more, with what is known of the cause.
	Lost func(cause error) error
	// Keep keeps a state that could not be saved for the next process.
	Keep func(unsaved []byte) error
	// Close gives back what the run has.
	Close func() error
}

// Workspace is a run that is open in a process.
type Workspace struct {
	process *Process
	run     runner.RunSpec
	options OpenOptions
	unsaved []byte
	closed  bool
}

var _ runner.Workspace = &Workspace{}

// Open opens a run in a process that has connected. The caller closes the process where that fails.
func Open(ctx context.Context, p *Process, run runner.RunSpec, o OpenOptions) (*Workspace, error) {
	w := &Workspace{process: p, run: run, options: o}
	if _, err := w.open(ctx, nil); err != nil {
		return nil, err
	}
	return w, nil
}

// CheckInstance has a process that has connected look whether the instance is there, as runner.InstanceChecker does. It does nothing else.
func CheckInstance(ctx context.Context, p *Process, run runner.RunSpec, hcl []byte, o OpenOptions) (gone bool, err error) {
	w := &Workspace{process: p, run: run, options: o}
	reply, err := w.open(ctx, hcl)
	if err != nil {
		return false, err
	}
	return reply.Gone, nil
}

func (w *Workspace) open(ctx context.Context, check []byte) (*result, error) {
	opening, backend, err := w.describe(check)
	if err != nil {
		return nil, &failure.Error{Op: failure.OpOpen, Class: failure.Unknown, Err: err}
	}
	w.process.listen(listeners{progress: w.run.Progress, output: w.run.Output, withheld: w.run.Withheld}, backend)
	reply, err := w.process.call(ctx, message{Kind: kindOpen, Open: opening}, w.options.Patience)
	if err != nil { // nothing was done to the infrastructure
		class := failure.Transient
		if ctx.Err() != nil {
			class, err = failure.Interrupted, context.Cause(ctx)
		}
		return nil, &failure.Error{Op: failure.OpOpen, Class: class, Err: err}
	}
	return reply, reply.Failed.unpack(context.Cause(ctx))
}

func (w *Workspace) describe(check []byte) (*opening, string, error) {
	files, err := snapshot.Read(w.run.Module.Files())
	if err != nil {
		return nil, "", err
	}
	identity, err := json.Marshal(w.run.Identity)
	if err != nil {
		return nil, "", fmt.Errorf("writing the run's identity: %w", err)
	}
	r := w.run
	o := &opening{
		Settings: w.options.Settings, Beat: w.options.Life / 6, Life: w.options.Life, // several are lost before one counts
		ID: r.ID, Identity: identity, Module: files, Digest: r.Module.Digest(), Lineage: r.Lineage, Variables: r.Variables,
		Environment: toBytes(r.Environment), Credentials: r.Credentials, InitEnvironment: toBytes(r.InitEnvironment), Files: toBytes(r.Files),
		Search: r.Search, NotFound: r.NotFound, Check: check,
	}
	for _, one := range r.Sensitive {
		o.Sensitive = append(o.Sensitive, []byte(one))
	}
	reached := w.options.State
	if reached.Address == "" {
		return o, "", nil
	}
	address, err := url.Parse(reached.Address)
	if err != nil {
		return nil, "", fmt.Errorf("reading where the state is served: %w", err)
	}
	o.State, o.Username, o.Password, o.Locks = address.Path, reached.Username, reached.Password, reached.LockAddress != ""
	return o, address.Host, nil
}

// Plan implements runner.Workspace.
func (w *Workspace) Plan(ctx context.Context) (*engine.Report, error) {
	reply, err := w.do(ctx, failure.OpPlan, kindPlan)
	return reply.Report.unpack(), err
}

// Planned implements runner.Workspace.
func (w *Workspace) Planned(ctx context.Context) (*engine.PlannedObjects, error) {
	reply, err := w.do(ctx, failure.OpPlan, kindPlanned)
	if err != nil {
		return nil, err
	}
	if reply.Planned == nil {
		return nil, errors.New("the run's process has reported no plan")
	}
	return reply.Planned, nil
}

// Apply implements runner.Workspace.
func (w *Workspace) Apply(ctx context.Context) (*engine.Report, error) {
	reply, err := w.do(ctx, failure.OpApply, kindApply)
	return reply.Report.unpack(), err
}

// ApplyPlan implements runner.Workspace.
func (w *Workspace) ApplyPlan(ctx context.Context) (*engine.Report, error) {
	reply, err := w.do(ctx, failure.OpApplyPlan, kindApplyPlan)
	return reply.Report.unpack(), err
}

// Destroy implements runner.Workspace.
func (w *Workspace) Destroy(ctx context.Context) (*engine.Report, error) {
	reply, err := w.do(ctx, failure.OpDestroy, kindDestroy)
	return reply.Report.unpack(), err
}

// do has the process carry an operation out. The result is never nil.
func (w *Workspace) do(ctx context.Context, op failure.Op, what kind) (*result, error) {
	if ctx.Err() != nil {
		return &result{}, &failure.Error{Op: op, Class: failure.Interrupted, Err: context.Cause(ctx)}
	}
	reply, err := w.process.call(ctx, message{Kind: what}, w.options.Patience)
	if err != nil {
		return &result{}, &failure.Error{Op: op, Class: failure.Killed, Err: w.options.Lost(err)}
	}
	if w.run.Session != nil {
		w.unsaved = reply.Unsaved
	}
	return reply, reply.Failed.unpack(context.Cause(ctx))
}

// Unsaved implements runner.Workspace.
func (w *Workspace) Unsaved() (bool, error) { return w.unsaved != nil, nil }

// Save implements runner.Workspace.
func (w *Workspace) Save(ctx context.Context) error {
	if w.unsaved == nil {
		return nil
	}
	return w.run.Session.Put(ctx, w.unsaved)
}

// Keep implements runner.Workspace.
func (w *Workspace) Keep() error {
	if w.closed {
		return nil
	}
	return errors.Join(w.options.Keep(w.unsaved), w.Close())
}

// Close implements runner.Workspace.
func (w *Workspace) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	w.process.Close()
	return w.options.Close()
}

func toBytes(texts map[string]string) map[string][]byte {
	made := make(map[string][]byte, len(texts))
	for name, text := range texts {
		made[name] = []byte(text)
	}
	return made
}

func toTexts(contents map[string][]byte) map[string]string {
	made := make(map[string]string, len(contents))
	for name, content := range contents {
		made[name] = string(content)
	}
	return made
}
