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
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// RunSpec describes one use of a module.
type RunSpec struct {
	// ID is the name of the run's folder. It must be unique among open and abandoned runs.
	ID string
	// Identity is stored with the run as JSON, for the process that finds its folder after a crash. It
	// must not contain secrets.
	Identity any
	// Module is the digest of a module that was passed to Prepare.
	Module string
	// Variables are the module's input variables as one JSON object. Strings are data, never
	// templates.
	Variables []byte
	// Environment is added to the engine's environment, for example credentials for the
	// infrastructure.
	Environment map[string]string
	// Credentials identifies the credentials in the environment, such as a Secret. Warm providers of
	// the same module and Credentials but a different environment are stopped.
	Credentials string
	// Files are written into the run's folder, readable by the engine's user only, and removed with
	// it. A warm provider keeps its own copies. The keys are environment variables that hold the paths.
	Files   map[string]string
	Backend Backend
	// Search adds the files of one of the module's search folders. Their import blocks and data
	// sources find what the state lacks.
	Search engine.Search
	// Bare replaces the module in runs that need only the state and the providers: a Destroy, or
	// ReadInstances. Otherwise nil.
	Bare *Bare
	// Batch replaces the module to use it for several Machines. Otherwise nil.
	Batch *Batch
	// Providers are running provider plugins to use, by address. By default, the engine's warm
	// providers are used, and the engine starts the others.
	Providers tfexec.ReattachInfo
	// Sensitive are strings to redact from everything that is reported.
	Sensitive []string
	// Secret are the names of sensitive variables. Text about them is withheld.
	Secret []string
	// Final, if set, reports whether only a different configuration can fix a provider error, given
	// its summary and detail on separate lines. If nil, no error is final.
	Final func(text string) bool
	// Progress, if set, receives events while the engine runs. It must not block.
	Progress func(engine.Event)
	// Output, if set, receives each redacted message that the engine prints for people. Withheld, if
	// set, receives the messages whose text is withheld from Output. Neither may block.
	Output, Withheld func(text string)
}

// Bare is a root module with the providers of a module and no resources.
type Bare struct {
	HCL []byte
	// Variables are the variables that it declares, as one JSON object.
	Variables []byte
}

var runIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func (r RunSpec) validate() error {
	if !runIDPattern.MatchString(r.ID) {
		return fmt.Errorf("run ID %q cannot be used as a file name; use letters, digits and ._-", r.ID)
	}
	if r.Backend.Address == "" {
		return errors.New("the run has no state backend")
	}
	if trimmed := bytes.TrimSpace(r.Variables); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(trimmed) {
		return errors.New("the run's variables are not a JSON object")
	}
	return errors.Join(reserved.CheckFiles(r.Files, r.Environment), reserved.Check(r.Environment))
}

// Workspace is an open run. Its methods run one engine at a time. Each returns a Report, also with
// an error.
type Workspace struct {
	engine *Engine
	slot   *slot
	run    RunSpec
	module string
	// used lists the module's providers.
	used   string
	dir    string
	redact *redact.Redactor
	// environment is the engine's environment, without what depends on its providers.
	environment map[string]string

	mu    sync.Mutex
	lease *provider.Lease // nil until an operation needs warm providers
	// plugins is the number of providers of the module, once there is a lease.
	plugins int
	// unsaved is the state that the engine could not save.
	unsaved []byte
	closed  bool
}

// Open waits for a free slot, creates the run's folder, and returns its Workspace. Close gives both
// back. It returns an *Error: Interrupted if ctx or the engine's Close ended the wait, Unknown if
// the run is impossible. Neither is the fault of a providerSpec.
func (e *Engine) Open(ctx context.Context, r RunSpec) (*Workspace, error) {
	redactor := e.dir.redactor(append([]string{r.Backend.Password}, r.Sensitive...)).About(r.Secret)
	failed := func(class failure.Class, err error) *failure.Error {
		return &failure.Error{Op: failure.OpOpen, Class: class, Err: redactor.Error(err)}
	}
	module, used, err := e.check(r)
	if err != nil {
		return nil, failed(failure.Unknown, err)
	}
	slot, err := e.slots.Take(ctx)
	if err != nil {
		return nil, failed(failure.Interrupted, err)
	}
	f := &Workspace{
		engine: e,
		slot:   slot,
		run:    r,
		module: module,
		used:   used,
		dir:    filepath.Join(e.dir.runs(), r.ID),
		redact: redactor,
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			err = errors.New("its folder exists: the run is open, or abandoned and not discarded")
		}
		return nil, failed(failure.Unknown, errors.Join(err, e.release(slot)))
	}
	if err := f.fill(ctx); err != nil {
		return nil, failed(failure.Unknown, errors.Join(err, f.Close()))
	}
	return f, nil
}

// check returns the folder of the run's module and the list of its providers.
func (e *Engine) check(r RunSpec) (module, providers string, err error) {
	if err := errors.Join(r.validate(), e.options.Sandbox.Check()); err != nil {
		return "", "", err
	}
	key, err := e.moduleKey(r.Module)
	if err != nil {
		return "", "", err
	}
	module, providers, prepared := e.prepared(key)
	if !prepared {
		return "", "", fmt.Errorf("module %s is not prepared", r.Module)
	}
	return module, providers, nil
}

// fill writes the run's folder. It writes the record first: nothing has ever run in a folder
// without one.
func (f *Workspace) fill(ctx context.Context) error {
	if err := f.record(); err != nil {
		return err
	}
	if err := f.linkModule(); err != nil {
		return fmt.Errorf("linking the module: %w", err)
	}
	variables := f.run.Variables
	if f.run.Bare != nil {
		variables = f.run.Bare.Variables
	}
	if err := os.WriteFile(filepath.Join(f.dir, variablesFile), variables, 0o600); err != nil {
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

// linkModule links the module into the run's folder, or what replaces it.
func (f *Workspace) linkModule() error {
	whole := filepath.Join(f.module, moduleDir)
	switch {
	case f.run.Bare != nil:
		isHCL := func(name string) bool { return filepath.Ext(name) == ".tf" }
		return errors.Join(linkAll(whole, f.dir, isHCL), os.WriteFile(filepath.Join(f.dir, bareFile), f.run.Bare.HCL, 0o600))
	case f.run.Batch != nil:
		return f.linkBatch(whole)
	}
	if err := linkAll(whole, f.dir, nil); err != nil || f.run.Search == engine.SearchNone {
		return err
	}
	return linkAll(filepath.Join(f.module, string(f.run.Search)), f.dir, nil)
}

func (f *Workspace) record() error {
	identity, err := json.Marshal(f.run.Identity)
	if err != nil {
		return fmt.Errorf("writing the run's identity: %w", err)
	}
	record := runMetadata{ID: f.run.ID, Module: f.run.Module, Started: f.engine.options.Clock.Now(), Identity: identity}
	if f.run.Batch != nil && f.run.Batch.Parts != nil {
		record.Batch = f.run.Batch.Parts
		if err := f.markParts(); err != nil {
			return fmt.Errorf("marking the parts of the batch: %w", err)
		}
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

// linkAll creates a link in dir for each entry of from, except those to leave out.
func linkAll(from, dir string, leaveOut func(name string) bool) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if leaveOut != nil && leaveOut(entry.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// PlanOptions configure a plan.
type PlanOptions struct {
	// Out keeps the plan for ApplyPlan.
	Out bool
	// Lock locks the state during the plan.
	Lock bool
	// Refresh reads the infrastructure first. Without it, the plan uses the state alone.
	Refresh bool
	// Destroy plans to destroy everything.
	Destroy bool
}

// Plan creates a plan and changes nothing.
func (f *Workspace) Plan(ctx context.Context, o PlanOptions) (*engine.Report, error) {
	options := []tfexec.PlanOption{
		tfexec.VarFile(variablesFile), tfexec.Lock(o.Lock), tfexec.Refresh(o.Refresh), tfexec.Destroy(o.Destroy), f.parallelism(),
	}
	if o.Out {
		options = append(options, tfexec.Out(planFile))
	}
	if err := f.refuseBare(failure.OpPlan); err != nil {
		return &engine.Report{}, err
	}
	return f.operate(ctx, failure.OpPlan, func(ctx context.Context, out *stream, providers *tfexec.ReattachOption) error {
		_, err := f.slot.terraform.PlanJSON(ctx, out, append(options, providers)...)
		return err
	})
}

// ReadInstances makes the provider read the resources of the state that have one of the addresses.
// The report lists missing ones as drift. It ignores everything else in the state, and neither
// locks nor writes it.
func (f *Workspace) ReadInstances(ctx context.Context, addresses []string) (*engine.Report, error) {
	return f.operate(ctx, failure.OpPlan, func(ctx context.Context, out *stream, providers *tfexec.ReattachOption) error {
		options := []tfexec.PlanOption{tfexec.VarFile(variablesFile), tfexec.Lock(false), tfexec.RefreshOnly(true), f.parallelism(), providers}
		for _, address := range addresses {
			options = append(options, tfexec.Target(address))
		}
		_, err := f.slot.terraform.PlanJSON(ctx, out, options...)
		return err
	})
}

// Apply plans and applies in one process, without a check in between. Use it where the plan can
// only create.
func (f *Workspace) Apply(ctx context.Context) (*engine.Report, error) {
	return f.apply(ctx, failure.OpApply, tfexec.VarFile(variablesFile))
}

// ApplyPlan applies the plan kept by Plan. Its Report has no Planned count; the plan's has.
func (f *Workspace) ApplyPlan(ctx context.Context) (*engine.Report, error) {
	options := []tfexec.ApplyOption{tfexec.DirOrPlan(planFile)}
	if takesVariablesWithPlan(f.engine.options.Binary) {
		// ephemeral variables are not stored in a plan
		options = append(options, tfexec.VarFile(variablesFile))
	}
	return f.apply(ctx, failure.OpApplyPlan, options...)
}

func (f *Workspace) apply(ctx context.Context, op failure.Op, options ...tfexec.ApplyOption) (*engine.Report, error) {
	if err := f.refuseBare(op); err != nil {
		return &engine.Report{}, err
	}
	return f.operate(ctx, op, func(ctx context.Context, out *stream, providers *tfexec.ReattachOption) error {
		return f.slot.terraform.ApplyJSON(ctx, out, append(options, f.parallelism(), providers)...)
	})
}

// refuseBare rejects an operation that, without the module, would destroy everything in the state.
func (f *Workspace) refuseBare(op failure.Op) error {
	if f.run.Bare == nil {
		return nil
	}
	err := errors.New("the run has only the module's providers, for a destroy or a look")
	return &failure.Error{Op: op, Class: failure.Unknown, Err: err}
}

// Destroy destroys everything in the state.
func (f *Workspace) Destroy(ctx context.Context) (*engine.Report, error) {
	return f.operate(ctx, failure.OpDestroy, func(ctx context.Context, out *stream, providers *tfexec.ReattachOption) error {
		return f.slot.terraform.DestroyJSON(ctx, out, tfexec.VarFile(variablesFile), f.parallelism(), providers)
	})
}

// engineParallelism is how many operations OpenTofu and Terraform carry out at once by default.
const engineParallelism = 10

// parallelism returns how many operations the engine carries out at once. Most of them wait for the infrastructure, so a
// batch has two for each Machine: its instance, and one thing beside it.
func (f *Workspace) parallelism() *tfexec.ParallelismOption {
	if f.run.Batch == nil {
		return tfexec.Parallelism(engineParallelism)
	}
	return tfexec.Parallelism(max(engineParallelism, 2*f.run.Batch.Layout.Machines))
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
		left:      f.noteLeft,
	})
	if err != nil {
		f.endProviders()
	}
	report.Providers = f.used
	return report, err
}

// ErroredState returns the state that the engine could not save, or nil if it left none that is
// readable. Save it before Close: it may be the only record of an object.
func (f *Workspace) ErroredState() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unsaved
}

// noteLeft keeps the newest valid state that the engine left: the file, or what it printed because
// it could not write the file. Printed states may be truncated. The caller holds the lock.
func (f *Workspace) noteLeft(printed []byte) {
	file, err := readErroredState(f.dir)
	if err != nil {
		f.engine.options.Logger.Error(err, "Reading a state that the engine could not save", "folder", f.run.ID)
	}
	f.unsaved = nil
	var newest *statefile.State
	for _, left := range [][]byte{withLineage(printed, f.run.ID), file} {
		if left == nil {
			continue
		}
		read, err := f.readLeft(left)
		if err != nil {
			f.engine.options.Logger.Error(err, "Ignoring an invalid state that the engine left", "folder", f.run.ID)
			continue
		}
		if newest == nil || read.Lineage == newest.Lineage && read.Serial > newest.Serial {
			newest, f.unsaved = read, left
		}
	}
}

// readLeft parses a state that the engine left. A batch's state must be splittable; its first part
// represents the whole.
func (f *Workspace) readLeft(state []byte) (*statefile.State, error) {
	if f.run.Batch != nil && f.run.Batch.Parts != nil {
		split, err := f.run.Batch.Parts.Split(state)
		if err != nil {
			return nil, err
		}
		state = split[0]
	}
	return statefile.Parse(state)
}

// Keep releases the slot and keeps the folder with the unsaved state, without the run's secrets.
// From then on, AbandonedRuns lists the run, also for the next Engine in this work folder; a batch
// is listed once for each Machine. A later Close is a no-op.
func (f *Workspace) Keep() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	var errs []error
	for _, secret := range secrets {
		errs = append(errs, os.RemoveAll(filepath.Join(f.dir, secret)))
	}
	errs = append(errs, f.writeUnsaved())
	left, err := readOrRemove(f.dir)
	for _, one := range left {
		f.engine.leave(one)
	}
	return errors.Join(append(errs, err, f.giveBack())...)
}

// writeUnsaved writes the unsaved state to the run's folder unless it is there already.
func (f *Workspace) writeUnsaved() error {
	if f.unsaved == nil {
		return nil
	}
	if there, err := readErroredState(f.dir); err == nil && bytes.Equal(there, f.unsaved) {
		return nil
	}
	return os.WriteFile(filepath.Join(f.dir, erroredFile), f.unsaved, 0o600)
}

// giveBack returns what the run has borrowed and kills its remaining processes. The caller holds
// the lock.
func (f *Workspace) giveBack() error {
	f.closed = true
	if f.lease != nil {
		f.lease.GiveBack()
	}
	_, err := workdir.KillProcesses(f.dir)
	return errors.Join(err, f.engine.release(f.slot))
}

// Close removes the folder and releases the slot. It can be called again.
func (f *Workspace) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	return f.redact.Error(errors.Join(f.giveBack(), os.RemoveAll(f.dir)))
}

// takesVariablesWithPlan reports whether the CLI accepts variables together with a saved plan.
// Older versions reject them.
func takesVariablesWithPlan(b Binary) bool {
	first := version.Must(version.NewVersion("1.10.0"))
	if b.Name == OpenTofu {
		first = version.Must(version.NewVersion("1.11.0"))
	}
	return b.Version.Core().GreaterThanOrEqual(first)
}
