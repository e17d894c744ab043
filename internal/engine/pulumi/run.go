package pulumi

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/bridge"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
	"github.com/machine-iac/machine-iac-operator/internal/engine/repeat"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// RunSpec describes one use of a program.
type RunSpec struct {
	// ID is the name of the run's folder. It must be unique among open and abandoned runs.
	ID string
	// Identity is stored with the run as JSON, for the process that finds its folder after a crash. It
	// must not contain secrets.
	Identity any
	// Project is the name in the program's Pulumi.yaml. It is part of the names of configuration and
	// resources.
	Project string
	// Program is the folder with Pulumi.yaml.
	Program fs.FS
	// Variables are the program's configuration as one JSON object. Strings are data, never templates.
	Variables []byte
	// Secret are the names of variables that are encrypted in the configuration, and hence in the
	// checkpoint. Text about them is withheld.
	Secret []string
	// Environment is added to the engine's environment, for example credentials for the
	// infrastructure.
	Environment map[string]string
	// Credentials is the name of the Secret with the credentials, or empty.
	Credentials string
	// Files are written into the run's folder, readable by the CLI's user only, and removed with it.
	// A warm bridge keeps its own copies. The keys are environment variables that hold the paths.
	Files map[string]string
	// Key encrypts secrets.
	Key *Key
	// Checkpoint is the stack's checkpoint, or nil.
	Checkpoint []byte
	// Save gets each checkpoint that the CLI writes, in order, and the last one before the operation
	// returns. Only an error for the last one fails the operation.
	Save func(ctx context.Context, checkpoint []byte) error
	// Search runs the program in one of the search folders instead of the program itself.
	Search engine.Search
	// Destroys means that the Workspace is only for a Destroy, which needs neither the program nor its
	// configuration.
	Destroys bool
	// Sensitive are strings to redact from everything that is reported.
	Sensitive []string
	// Final, if set, reports whether only a different configuration can fix a provider error, given
	// its summary and detail on separate lines. If nil, no error is final.
	Final func(text string) bool
	// Progress, if set, receives events while the CLI runs. It must not block.
	Progress func(engine.Event)
	// Output, if set, receives each redacted message that the CLI prints for people. Withheld, if set,
	// receives the messages whose text is withheld from Output. Neither may block.
	Output, Withheld func(text string)
}

const (
	projectFile = "Pulumi.yaml"
	programDir  = "program"
	eventsPipe  = "events"
)

var runIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

var projectPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

func (r RunSpec) validate() error {
	if !runIDPattern.MatchString(r.ID) {
		return fmt.Errorf("run ID %q cannot be used as a file name; use letters, digits and ._-", r.ID)
	}
	if !projectPattern.MatchString(r.Project) {
		return fmt.Errorf("project %q cannot be used as the name of a stack's project; use letters, digits and ._-",
			r.Project)
	}
	if r.Program == nil || r.Key == nil || r.Save == nil {
		return errors.New("the run has no program, no key or no Save function")
	}
	return errors.Join(reserved.CheckFiles(r.Files, r.Environment), reserved.Check(r.Environment))
}

// owner identifies the credentials of a run, or returns "" if unknown.
func (r RunSpec) owner() string {
	if r.Credentials == "" {
		return ""
	}
	return r.Project + " " + r.Credentials
}

// checkKey returns an error if the run's key cannot decrypt the checkpoint.
func (r RunSpec) checkKey() error {
	salt, err := SaltOf(r.begin())
	if err == nil && salt != "" && salt != r.Key.salt {
		err = errors.New("the checkpoint is encrypted with another key than the run's; Rekey it first")
	}
	return err
}

// begin returns the run's initial checkpoint.
func (r RunSpec) begin() []byte {
	if r.Checkpoint == nil {
		return emptyCheckpoint(r.Project)
	}
	return r.Checkpoint
}

// Workspace is an open run. Its methods run one CLI at a time. Each returns a Report, also with an
// error.
type Workspace struct {
	engine *Engine
	slot   int
	run    RunSpec
	dir    string
	files  map[string]string // paths by environment variable
	// begun is the checkpoint that the CLI starts with. key serves the key; nil if the CLI gets the
	// passphrase.
	begun   []byte
	key     *keyService
	relay   *bridge.Relay // nil if the CLI starts bridges itself
	redact  *redact.Redactor
	command *command
	stack   auto.Stack
	// outdated means that the last plan found that the infrastructure differs from the checkpoint.
	outdated bool

	mu      sync.Mutex
	unsaved []byte
	closed  bool
}

// Open waits for a free slot, creates the run's folder, and returns its Workspace. Close gives both
// back. It returns a *failure.Error: Interrupted if ctx or the engine's Close ended the wait,
// InvalidConfiguration for values that Pulumi does not accept, and Unknown if the run is otherwise
// impossible, which is not the fault of a providerSpec.
func (e *Engine) Open(ctx context.Context, r RunSpec) (*Workspace, error) {
	redactor := e.redactor(r)
	failed := func(class failure.Class, err error) *failure.Error {
		return &failure.Error{Op: failure.OpOpen, Class: class, Err: redactor.Error(err)}
	}
	if err := errors.Join(r.validate(), e.options.Sandbox.Check(), e.mirrored.Check()); err != nil {
		return nil, failed(failure.Unknown, err)
	}
	if err := checkReserved(r.Variables); err != nil {
		return nil, failed(failure.InvalidConfiguration, err)
	}
	if err := r.checkKey(); err != nil {
		return nil, failed(failure.Unknown, err) // no configuration fixes this
	}
	slot, err := e.slots.Take(ctx)
	if err != nil {
		return nil, failed(failure.Interrupted, err)
	}
	f := &Workspace{
		engine: e, slot: slot, run: r, dir: filepath.Join(e.runs(), r.ID),
		redact: redactor,
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		e.slots.Put(slot)
		if errors.Is(err, os.ErrExist) {
			err = errors.New("its folder exists: the run is open, or abandoned and not discarded")
		}
		return nil, failed(failure.Unknown, err)
	}
	if err := f.fill(ctx); err != nil {
		return nil, failed(failure.Unknown, errors.Join(err, f.Close()))
	}
	return f, nil
}

// redactor removes sensitive strings, and the paths of runs and processes, from reports.
func (e *Engine) redactor(r RunSpec) *redact.Redactor {
	sensitive := r.Sensitive
	if r.Key != nil {
		sensitive = append([]string{r.Key.passphrase, r.Key.token(r.ID), base64.StdEncoding.EncodeToString(r.Key.derived)},
			sensitive...)
	}
	return redact.New(sensitive).About(r.Secret).Inside(e.dir, []string{"runs", "t"}, []string{programDir})
}

func (f *Workspace) path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

func (f *Workspace) stateFile() string { return f.path(statePath(f.run.Project)) }

func (f *Workspace) readState() ([]byte, error) { return readState(f.dir, f.run.Project) }

// temporary returns where plugins create their sockets. Its path is short.
func (f *Workspace) temporary() string {
	return filepath.Join(f.engine.temporary(), strconv.Itoa(f.slot))
}

// socket returns where the run's key is served.
func (f *Workspace) socket() string { return filepath.Join(f.temporary(), "key") }

// fill writes the run's folder. It does not use the CLI for that: each command costs a process.
func (f *Workspace) fill(ctx context.Context) (err error) {
	f.begun = f.run.begin()
	serves := f.engine.serves(f.run)
	if serves {
		if f.begun, err = served(f.begun); err != nil {
			return err
		}
	}
	if err := f.writeMetadata(); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(f.temporary()), os.Mkdir(f.temporary(), 0o700)); err != nil {
		return err
	}
	if f.files, err = workdir.WriteFiles(f.dir, f.run.Files); err != nil {
		return err
	}
	if err := f.serve(serves); err != nil {
		return err
	}
	if err := writeProgram(f.run, f.path(programDir)); err != nil {
		return fmt.Errorf("writing the program: %w", err)
	}
	settings, err := f.run.settings(f.path(programDir), serves)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path(programDir, "Pulumi."+StackName+".yaml"), settings, 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	if err := f.writeBackend(); err != nil {
		return err
	}
	if err := os.Mkdir(f.path("home"), 0o700); err != nil {
		return err
	}
	if f.engine.options.Plugins != "" {
		if err := os.Symlink(f.engine.options.Plugins, f.path("home", "plugins")); err != nil {
			return err
		}
	}
	return f.open(ctx)
}

// serve starts serving what the CLI gets from this process: its key and bridges.
func (f *Workspace) serve(key bool) (err error) {
	if key {
		if f.key, err = serveKey(f.socket(), f.run.Key, f.run.Key.token(f.run.ID)); err != nil {
			return err
		}
	}
	if f.engine.bridges != nil {
		f.relay, err = f.engine.bridges.Serve(provider.Use{Environment: f.engine.pluginEnvironment(f.run),
			Secrets: f.run.Files, Owner: f.run.owner()})
	}
	return err
}

func (f *Workspace) writeBackend() error {
	if err := os.MkdirAll(filepath.Dir(f.stateFile()), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(f.path(backendDir, ".pulumi", "meta.yaml"), []byte("version: 1\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(f.stateFile(), f.begun, 0o600)
}

func (f *Workspace) open(ctx context.Context) error {
	f.command = &command{
		binary: f.engine.options.Binary, environment: environmentOf(f.engine.environment(f)),
		waitDelay: f.engine.options.WaitDelay, starts: &f.engine.starts,
		pipe: f.path(eventsPipe), sandbox: f.engine.options.Sandbox,
		policy: sandbox.Policy{Read: f.engine.readable, Write: []string{f.dir, f.temporary()}},
	}
	workspace, err := auto.NewLocalWorkspace(ctx, auto.WorkDir(f.path(programDir)), auto.PulumiHome(f.path("home")),
		auto.Pulumi(f.command))
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	if f.stack, err = auto.SelectStack(ctx, StackName, workspace); err != nil {
		return fmt.Errorf("opening the stack: %w", err)
	}
	return nil
}

// writeProgram copies a program, which must not contain files that this package writes. A Destroy
// has a project with the program's name, but no program.
func writeProgram(r RunSpec, dir string) error {
	if r.Destroys {
		project := fmt.Appendf(nil, "name: %s\nruntime: %s\n", r.Project, runtimeYAML)
		return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, projectFile), project, 0o600))
	}
	if err := os.CopyFS(dir, r.Program); err != nil {
		return err
	}
	if r.Search != engine.SearchNone {
		if err := os.Rename(filepath.Join(dir, string(r.Search), projectFile), filepath.Join(dir, projectFile)); err != nil {
			return err
		}
	}
	settings, err := filepath.Glob(filepath.Join(dir, "Pulumi.*.yaml"))
	if err != nil || len(settings) > 0 {
		return errors.Join(err, errors.New("it contains stack settings (Pulumi.*.yaml), which only the operator may write"))
	}
	return errors.Join(writeOut(r, filepath.Join(dir, projectFile)), os.Chmod(dir, 0o700))
}

// variableLocals is the variable with the values that a program can repeat something for.
const variableLocals = "locals"

// writeOut expands the repetitions of a program. Pulumi reports any other problem.
func writeOut(r RunSpec, file string) error {
	program, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	variables, err := r.variables()
	if err != nil {
		return err
	}
	written, err := repeat.Program(program, variables[variableLocals])
	if err != nil || bytes.Equal(written, program) {
		return err
	}
	return errors.Join(os.Remove(file), os.WriteFile(file, written, 0o600))
}

// Unsaved returns the checkpoint that Save did not accept, or nil. Save it before Close: it may be
// the only record of an object.
func (f *Workspace) Unsaved() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unsaved
}

// Keep releases the slot and keeps the folder with the unsaved checkpoint, without the run's
// secrets. From then on, AbandonedRuns lists the run, also for the next Engine in this work folder.
// A later Close is a no-op.
func (f *Workspace) Keep() error {
	return f.end(func() error {
		f.engine.leave(f.run.ID)
		return strip(f.dir)
	})
}

// Close removes the folder and releases the slot. It can be called again.
func (f *Workspace) Close() error {
	return f.end(func() error { return os.RemoveAll(f.dir) })
}

func (f *Workspace) end(tidy func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	_, left := workdir.KillProcesses(f.dir) // nothing may keep running for a closed run
	err := errors.Join(left, f.key.close(), f.relay.Close(), tidy(), os.RemoveAll(f.temporary()))
	f.engine.slots.Put(f.slot)
	return f.redact.Error(err)
}
