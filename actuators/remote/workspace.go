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
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

// opening is the description of a run for its process.
type opening struct {
	// Settings are the engine's settings.
	Settings []byte `json:"settings,omitempty"`
	// Beat is the interval at which the process confirms that its manager leads.
	Beat time.Duration `json:"beat"`
	// Life is how long the engine lives after a confirmed request.
	Life time.Duration `json:"life"`

	ID              string            `json:"id"`
	Identity        json.RawMessage   `json:"identity,omitempty"`
	Module          module.Files      `json:"module"`
	Digest          string            `json:"digest"`
	Lineage         string            `json:"lineage,omitempty"`
	Variables       []byte            `json:"variables"`
	Environment     map[string][]byte `json:"environment,omitempty"`
	Credentials     string            `json:"credentials,omitempty"`
	InitEnvironment map[string][]byte `json:"initEnvironment,omitempty"`
	Files           map[string][]byte `json:"files,omitempty"`
	Sensitive       [][]byte          `json:"sensitive,omitempty"`
	Search          engine.Search     `json:"search,omitempty"`
	Destroys        bool              `json:"destroys,omitempty"`
	NotFound        bool              `json:"notFound,omitempty"`

	// State is the path of the state, or empty; Username and Password grant access. Locks reports
	// whether the engine locks it.
	State              string `json:"state,omitempty"`
	Username, Password string `json:",omitempty"`
	Locks              bool   `json:"locks,omitempty"`
	// Check requests a look only.
	Check bool `json:"check,omitempty"`
}

// OpenOptions says how to open a run in a process.
type OpenOptions struct {
	// Settings are the engine's settings. They may contain secrets.
	Settings []byte
	// State is the endpoint of the run's state in this process; zero without a state.
	State backend.Endpoint
	// Life is how long the engine lives after its manager was last known to lead.
	Life time.Duration
	// Patience is how long an interrupted engine may take to save its state and exit.
	Patience time.Duration
	// Lost is called when the process ends or becomes unreachable before it reports the outcome of
	// an operation. It returns once the engine can no longer act, with details of the cause.
	Lost func(cause error) error
	// Keep stores an unsaved state for the next process.
	Keep func(unsaved []byte) error
	// Close releases the run's resources.
	Close func() error
}

// Workspace is a run opened in a process.
type Workspace struct {
	process *Process
	run     runner.RunSpec
	options OpenOptions
	unsaved []byte
	closed  bool
}

var _ runner.Workspace = &Workspace{}

// Open opens a run in a connected process. On failure the caller closes the process.
func Open(ctx context.Context, p *Process, run runner.RunSpec, o OpenOptions) (*Workspace, error) {
	w := &Workspace{process: p, run: run, options: o}
	if _, err := w.open(ctx, false); err != nil {
		return nil, err
	}
	return w, nil
}

// CheckInstance makes a connected process check the instance, as runner.InstanceChecker does, and
// nothing else.
func CheckInstance(ctx context.Context, p *Process, run runner.RunSpec, o OpenOptions) (gone bool, err error) {
	w := &Workspace{process: p, run: run, options: o}
	reply, err := w.open(ctx, true)
	if err != nil {
		return false, err
	}
	return reply.Gone, nil
}

func (w *Workspace) open(ctx context.Context, check bool) (*result, error) {
	opening, backend, err := w.describe(check)
	if err != nil {
		return nil, &failure.Error{Op: failure.OpOpen, Class: failure.Unknown, Err: err}
	}
	w.process.listen(listeners{progress: w.run.Progress, output: w.run.Output, withheld: w.run.Withheld}, backend)
	reply, err := w.process.call(ctx, message{Kind: kindOpen, Open: opening}, w.options.Patience)
	if err != nil { // the infrastructure was not touched
		class := failure.Transient
		if ctx.Err() != nil {
			class, err = failure.Interrupted, context.Cause(ctx)
		}
		return nil, &failure.Error{Op: failure.OpOpen, Class: class, Err: err}
	}
	return reply, reply.Failed.unpack(context.Cause(ctx))
}

func (w *Workspace) describe(check bool) (*opening, string, error) {
	files, err := module.ReadFiles(w.run.Module.Files())
	if err != nil {
		return nil, "", err
	}
	identity, err := json.Marshal(w.run.Identity)
	if err != nil {
		return nil, "", fmt.Errorf("writing the run's identity: %w", err)
	}
	r := w.run
	o := &opening{
		Settings: w.options.Settings, Beat: w.options.Life / 6, Life: w.options.Life, // tolerate several lost beats
		ID: r.ID, Identity: identity, Module: files, Digest: r.Module.Digest(), Lineage: r.Lineage, Variables: r.Variables,
		Environment: toBytes(r.Environment), Credentials: r.Credentials, InitEnvironment: toBytes(r.InitEnvironment),
		Files:  toBytes(r.Files),
		Search: r.Search, Destroys: r.Destroys, NotFound: r.NotFound, Check: check,
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
		return nil, "", fmt.Errorf("reading the state's endpoint: %w", err)
	}
	o.State, o.Username, o.Password, o.Locks = address.Path, reached.Username, reached.Password, reached.LockAddress != ""
	return o, address.Host, nil
}

// Plan implements runner.Workspace.
func (w *Workspace) Plan(ctx context.Context) (*engine.Report, error) {
	return w.report(ctx, failure.OpPlan, kindPlan)
}

// Planned implements runner.Workspace.
func (w *Workspace) Planned(ctx context.Context) (*engine.PlannedObjects, error) {
	reply, err := w.do(ctx, failure.OpPlan, kindPlanned)
	if err != nil {
		return nil, err
	}
	if reply.Planned == nil {
		return nil, errors.New("the run's process reported no plan")
	}
	return reply.Planned, nil
}

// Apply implements runner.Workspace.
func (w *Workspace) Apply(ctx context.Context) (*engine.Report, error) {
	return w.report(ctx, failure.OpApply, kindApply)
}

// ApplyPlan implements runner.Workspace.
func (w *Workspace) ApplyPlan(ctx context.Context) (*engine.Report, error) {
	return w.report(ctx, failure.OpApplyPlan, kindApplyPlan)
}

// Destroy implements runner.Workspace.
func (w *Workspace) Destroy(ctx context.Context) (*engine.Report, error) {
	return w.report(ctx, failure.OpDestroy, kindDestroy)
}

// report makes the process execute an operation. The report is never nil.
func (w *Workspace) report(ctx context.Context, op failure.Op, what kind) (*engine.Report, error) {
	reply, err := w.do(ctx, op, what)
	if reply.Report == nil {
		return &engine.Report{}, err
	}
	return reply.Report, err
}

// do makes the process execute an operation. The result is never nil.
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
func (w *Workspace) Unsaved() bool { return w.unsaved != nil }

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
