package tofu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// RunSpec describes one use of a module.
type RunSpec struct {
	// ID names the run's folder; it is unique among the runs that are open or abandoned.
	ID string
	// Identity is kept with the run as JSON, for the process that finds its folder after a crash. No secrets.
	Identity any
	// Module is the digest of a module that Prepare has prepared.
	Module string
	// Variables are the module's input variables: one JSON object. Its strings are data, never templates.
	Variables []byte
	// Environment is added to the engine's, for example credentials of the infrastructure.
	Environment map[string]string
	// Credentials names whose credentials the environment has, such as a Secret. Warm providers of the same module and name that have other
	// ones are ended.
	Credentials string
	// Files are written into the run's folder, for the engine's user alone, and removed with it. Their paths are in the engine's
	// environment, in the variables that they are named by.
	Files   map[string]string
	Backend Backend
	// Search adds the files of one of the module's folders, whose import blocks and data sources find what the state lacks.
	Search engine.Search
	// InstanceCheck is HCL that takes the place of the module's: its providers and what they need, for ReadInstances. Nil for any other use.
	InstanceCheck []byte
	// Batch is what takes the place of the module to use it for several Machines; nil for any other use.
	Batch *Batch
	// Providers are running provider plugins to use, by address. Where there are none, the engine's warm ones are used, and those
	// that are not warm are started by the engine.
	Providers tfexec.ReattachInfo
	// Sensitive are strings that must not show in anything that is reported.
	Sensitive []string
	// Secret are the names of variables whose values are sensitive: what is said of them is withheld.
	Secret []string
	// Final, if set, reports which errors of providers only another configuration can fix, by their text: summary and detail, each on
	// lines of its own. Where it is nil, none can.
	Final func(text string) bool
	// Progress, if set, receives what the engine does while it does it. It must not block.
	Progress func(engine.Event)
	// Output, if set, receives what the engine prints for people, message by message, free of sensitive strings. It must not block. Withheld, if
	// set, receives those messages whose text is withheld from Output.
	Output, Withheld func(text string)
}

var runIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func (r RunSpec) validate() error {
	if !runIDPattern.MatchString(r.ID) {
		return fmt.Errorf("the run id %q can't name a folder; use letters, digits and ._-", r.ID)
	}
	if r.Backend.Address == "" {
		return errors.New("the run has no state backend")
	}
	if trimmed := bytes.TrimSpace(r.Variables); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(trimmed) {
		return errors.New("the run's variables are no JSON object")
	}
	return errors.Join(reserved.CheckFiles(r.Files, r.Environment), reserved.Check(r.Environment))
}

// Workspace is an open run. Its methods run one engine at a time; each returns a Report, also with an error.
type Workspace struct {
	engine *Engine
	slot   *slot
	run    RunSpec
	module string
	dir    string
	redact *redact.Redactor
	// environment is the engine's, but for what depends on its providers.
	environment map[string]string

	mu    sync.Mutex
	lease *provider.Lease // nil until an operation wants warm providers
	// plugins is how many providers the module uses, once there is a lease.
	plugins int
	dumped  []byte
	closed  bool
}

// Open waits for a free slot, makes the run's folder, and returns it. Close gives both back. An error is an *Error: a wait that
// ctx or the engine's Close ended is Interrupted, and a run that can't be is Unknown: no providerSpec is the cause.
func (e *Engine) Open(ctx context.Context, r RunSpec) (*Workspace, error) {
	redactor := e.dir.redactor(append([]string{r.Backend.Password}, r.Sensitive...)).About(r.Secret)
	failed := func(class failure.Class, err error) *failure.Error {
		return &failure.Error{Op: failure.OpOpen, Class: class, Err: redactor.Error(err)}
	}
	module, err := e.check(r)
	if err != nil {
		return nil, failed(failure.Unknown, err)
	}
	slot, err := e.acquire(ctx)
	if err != nil {
		return nil, failed(failure.Interrupted, err)
	}
	f := &Workspace{
		engine: e,
		slot:   slot,
		run:    r,
		module: module,
		dir:    filepath.Join(e.dir.runs(), r.ID),
		redact: redactor,
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			err = errors.New("its folder exists: it is open already, or abandoned and not discarded")
		}
		return nil, failed(failure.Unknown, errors.Join(err, e.release(slot)))
	}
	if err := f.fill(ctx); err != nil {
		return nil, failed(failure.Unknown, errors.Join(err, f.Close()))
	}
	return f, nil
}

// check returns the folder of the run's module.
func (e *Engine) check(r RunSpec) (string, error) {
	if err := errors.Join(r.validate(), e.options.Sandbox.Check()); err != nil {
		return "", err
	}
	key, err := e.moduleKey(r.Module)
	if err != nil {
		return "", err
	}
	module, prepared := e.prepared(key)
	if !prepared {
		return "", fmt.Errorf("its module %s is not prepared", r.Module)
	}
	return module, nil
}

// fill writes what the engine finds in the run's folder. The record comes first: a folder without one has never been run in.
func (f *Workspace) fill(ctx context.Context) error {
	if err := f.record(); err != nil {
		return err
	}
	if err := f.linkModule(); err != nil {
		return fmt.Errorf("linking the module: %w", err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, variablesFile), f.run.Variables, 0o600); err != nil {
		return fmt.Errorf("writing the variables: %w", err)
	}
	own, err := workdir.WriteFiles(f.dir, f.run.Files)
	if err != nil {
		return err
	}
	maps.Copy(own, f.run.Environment)
	f.environment = f.engine.confined(f.engine.environment(f.dir, f.slot, own, f.run.Backend), f.dir, f.module)
	return f.slot.use(ctx, f.dir, f.environment)
}

// linkModule puts the module into the run's folder, or what takes its place.
func (f *Workspace) linkModule() error {
	whole := filepath.Join(f.module, moduleDir)
	if f.run.InstanceCheck != nil {
		for _, name := range []string{dataDir, lockFile, backendFile} {
			if err := os.Symlink(filepath.Join(whole, name), filepath.Join(f.dir, name)); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(f.dir, instanceCheckFile), f.run.InstanceCheck, 0o600)
	}
	if f.run.Batch != nil {
		return f.linkBatch(whole)
	}
	if err := linkAll(whole, f.dir); err != nil || f.run.Search == engine.SearchNone {
		return err
	}
	return linkAll(filepath.Join(f.module, string(f.run.Search)), f.dir)
}

func (f *Workspace) record() error {
	identity, err := json.Marshal(f.run.Identity)
	if err != nil {
		return fmt.Errorf("writing the run's identity: %w", err)
	}
	record := runMetadata{ID: f.run.ID, Module: f.run.Module, Started: f.engine.options.Clock.Now(), Identity: identity}
	if f.run.Batch != nil {
		record.Batch = f.run.Batch.Parts
	}
	content, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("writing the run's record: %w", err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, runFile), content, 0o600); err != nil {
		return fmt.Errorf("writing the run's record: %w", err)
	}
	return nil
}

// linkAll makes a link in dir to each entry of from.
func linkAll(from, dir string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// PlanOptions say how to plan.
type PlanOptions struct {
	// Out keeps the plan for ApplyPlan.
	Out bool
	// Lock takes the state's lock meanwhile.
	Lock bool
	// Refresh reads the infrastructure first; without it the plan is made from the state alone.
	Refresh bool
	// Destroy plans to destroy everything.
	Destroy bool
}

// Plan plans and changes nothing.
func (f *Workspace) Plan(ctx context.Context, o PlanOptions) (*engine.Report, error) {
	options := []tfexec.PlanOption{
		tfexec.VarFile(variablesFile), tfexec.Lock(o.Lock), tfexec.Refresh(o.Refresh), tfexec.Destroy(o.Destroy),
	}
	if o.Out {
		options = append(options, tfexec.Out(planFile))
	}
	return f.operate(ctx, failure.OpPlan, func(ctx context.Context, out *stream, providers *tfexec.ReattachOption) error {
		_, err := f.slot.terraform.PlanJSON(ctx, out, append(options, providers)...)
		return err
	})
}

// ReadInstances has the provider read the resources of the state that have one of the addresses; the report lists those that are gone as drift. Everything else
// in the state is left alone, and nothing is locked or written.
func (f *Workspace) ReadInstances(ctx context.Context, addresses []string) (*engine.Report, error) {
	return f.operate(ctx, failure.OpPlan, func(ctx context.Context, out *stream, providers *tfexec.ReattachOption) error {
		options := []tfexec.PlanOption{tfexec.VarFile(variablesFile), tfexec.Lock(false), tfexec.RefreshOnly(true), providers}
		for _, address := range addresses {
			options = append(options, tfexec.Target(address))
		}
		_, err := f.slot.terraform.PlanJSON(ctx, out, options...)
		return err
	})
}

// Apply plans and carries the plan out unread, in one process. Use it where the plan can only create.
func (f *Workspace) Apply(ctx context.Context) (*engine.Report, error) {
	return f.apply(ctx, failure.OpApply, tfexec.VarFile(variablesFile))
}

// ApplyPlan carries out the plan that Plan kept. Its Report has no Planned count: the plan had it.
func (f *Workspace) ApplyPlan(ctx context.Context) (*engine.Report, error) {
	options := []tfexec.ApplyOption{tfexec.DirOrPlan(planFile)}
	if takesVariablesWithPlan(f.engine.options.Binary) {
		// ephemeral variables are no part of a plan
		options = append(options, tfexec.VarFile(variablesFile))
	}
	return f.apply(ctx, failure.OpApplyPlan, options...)
}

func (f *Workspace) apply(ctx context.Context, op failure.Op, options ...tfexec.ApplyOption) (*engine.Report, error) {
	return f.operate(ctx, op, func(ctx context.Context, out *stream, providers *tfexec.ReattachOption) error {
		return f.slot.terraform.ApplyJSON(ctx, out, append(options, providers)...)
	})
}

// Destroy destroys everything that the state knows.
func (f *Workspace) Destroy(ctx context.Context) (*engine.Report, error) {
	return f.operate(ctx, failure.OpDestroy, func(ctx context.Context, out *stream, providers *tfexec.ReattachOption) error {
		return f.slot.terraform.DestroyJSON(ctx, out, tfexec.VarFile(variablesFile), providers)
	})
}

func (f *Workspace) operate(ctx context.Context, op failure.Op, call func(context.Context, *stream, *tfexec.ReattachOption) error) (*engine.Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &engine.Report{}, &failure.Error{Op: op, Class: failure.Unknown, Err: errors.New("the run is closed")}
	}
	running := f.providers(ctx)
	if err := f.slot.terraform.SetEnv(f.environmentBeside(running)); err != nil {
		return &engine.Report{}, &failure.Error{Op: op, Class: failure.Unknown, Err: f.redact.Error(err)}
	}
	providers := tfexec.Reattach(running)
	report, err := f.slot.run(ctx, operation{
		op:        op,
		dir:       f.dir,
		redact:    f.redact,
		progress:  f.run.Progress,
		output:    f.run.Output,
		withheld:  f.run.Withheld,
		call:      func(ctx context.Context, out *stream) error { return call(ctx, out, providers) },
		needsPlan: op == failure.OpPlan,
		final:     f.run.Final,
		dumped:    func(state []byte) { f.dumped = state },
	})
	if err != nil {
		f.endProviders()
	}
	return report, err
}

// ErroredState returns the state that the engine could not save, nil where there is none. It must be saved before the run is
// closed: it may be all that is known of an object.
func (f *Workspace) ErroredState() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, err := readErroredState(f.dir)
	if state == nil && err == nil {
		return f.dumped, nil
	}
	return state, err
}

// Keep gives the slot back and leaves the folder with the state that could not be saved, but without the run's secrets. AbandonedRuns lists
// it from then on, also those of the next Engine in this work folder; of a run for several Machines, one for each of them. Close does nothing afterwards.
func (f *Workspace) Keep() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	var errs []error
	if f.dumped != nil && !exists(filepath.Join(f.dir, erroredFile)) {
		errs = append(errs, os.WriteFile(filepath.Join(f.dir, erroredFile), f.dumped, 0o600))
	}
	for _, secret := range secrets {
		errs = append(errs, os.RemoveAll(filepath.Join(f.dir, secret)))
	}
	left := []AbandonedRun{readAbandonedRun(f.dir)}
	if record := readRecord(f.dir); record.Batch != nil {
		parts, err := disperse(f.dir, record)
		if errs = append(errs, err); err == nil {
			left = parts
		}
	}
	for _, one := range left {
		f.engine.leave(one)
	}
	return errors.Join(append(errs, f.giveBack())...)
}

// giveBack returns what the run has borrowed. The caller holds the lock.
func (f *Workspace) giveBack() error {
	f.closed = true
	f.dumped = nil
	if f.lease != nil {
		f.lease.GiveBack()
	}
	return f.engine.release(f.slot)
}

// Close removes the folder with everything in it, and gives the slot back. It may be called again.
func (f *Workspace) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	return f.redact.Error(errors.Join(f.giveBack(), os.RemoveAll(f.dir)))
}

// takesVariablesWithPlan reports whether the CLI accepts variables beside a saved plan. Older ones refuse them.
func takesVariablesWithPlan(b Binary) bool {
	first := version.Must(version.NewVersion("1.10.0"))
	if b.Name == OpenTofu {
		first = version.Must(version.NewVersion("1.11.0"))
	}
	return b.Version.Core().GreaterThanOrEqual(first)
}
