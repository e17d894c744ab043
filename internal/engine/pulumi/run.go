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
	"slices"
	"strconv"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/plugin"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
	"github.com/machine-iac/machine-iac-operator/internal/engine/repeat"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// RunSpec describes one use of a program.
type RunSpec struct {
	// ID names the run's folder; it is unique among the runs that are open or abandoned.
	ID string
	// Identity is kept with the run as JSON, for the process that finds its folder after a crash. No secrets.
	Identity any
	// Project is the name in the program's Pulumi.yaml. Configuration is named after it, and so is all that it makes.
	Project string
	// Program is the folder with Pulumi.yaml.
	Program fs.FS
	// Variables are the program's configuration: one JSON object. Its strings are data, never templates.
	Variables []byte
	// Secret are the names of variables that are encrypted in the configuration, and so in the checkpoint. What is said of them is withheld.
	Secret []string
	// Environment is added to the engine's, for example credentials of the infrastructure.
	Environment map[string]string
	// Credentials names the Secret that the credentials are from; empty for none.
	Credentials string
	// Files are written into the run's folder, for the CLI's user alone, and removed with it. Their paths are in the CLI's environment, in
	// the variables that they are named by.
	Files map[string]string
	// Key encrypts what is secret.
	Key *Key
	// Checkpoint is what is known of the stack; nil for nothing.
	Checkpoint []byte
	// Save is given each checkpoint that the CLI writes, in order, the last one before an operation returns. An error of the last one
	// fails the operation; one before it is made good by the next.
	Save func(ctx context.Context, checkpoint []byte) error
	// Search runs the program in one of the folders in place of the program itself.
	Search engine.Search
	// Sensitive are strings that must not show in anything that is reported.
	Sensitive []string
	// Final, if set, reports which errors of providers only another configuration can fix, by their text: summary and detail, each on
	// lines of its own. Where it is nil, none can.
	Final func(text string) bool
	// Progress, if set, receives what the CLI does while it does it. It must not block.
	Progress func(engine.Event)
	// Output, if set, receives what the CLI prints for people, message by message, free of sensitive strings. It must not block. Withheld, if set,
	// receives those messages whose text is withheld from Output.
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
		return fmt.Errorf("the run id %q can't name a folder; use letters, digits and ._-", r.ID)
	}
	if !projectPattern.MatchString(r.Project) {
		return fmt.Errorf("the project %q can't name a stack's project; use letters, digits and ._-", r.Project)
	}
	if r.Program == nil || r.Key == nil || r.Save == nil {
		return errors.New("the run has no program, no key or no function that saves its checkpoints")
	}
	return errors.Join(reserved.CheckFiles(r.Files, r.Environment), reserved.Check(r.Environment))
}

// owner names whose credentials a run has, "" where nothing is known.
func (r RunSpec) owner() string {
	if r.Credentials == "" {
		return ""
	}
	return r.Project + " " + r.Credentials
}

// checkKey refuses a checkpoint that the run's key does not open.
func (r RunSpec) checkKey() error {
	salt, err := SaltOf(r.begin())
	if err == nil && salt != "" && salt != r.Key.salt {
		err = errors.New("its checkpoint is encrypted with another key than the run's; Rekey it first")
	}
	return err
}

// begin is the checkpoint that the run begins with.
func (r RunSpec) begin() []byte {
	if r.Checkpoint == nil {
		return emptyCheckpoint(r.Project)
	}
	return r.Checkpoint
}

// Workspace is an open run. Its methods run one CLI at a time; each returns a Report, also with an error.
type Workspace struct {
	engine *Engine
	slot   int
	run    RunSpec
	dir    string
	files  map[string]string // paths, by the variables that they are in
	// begun is the checkpoint that the CLI finds, key its service; nil where the CLI is given the passphrase.
	begun   []byte
	key     *keyService
	relay   *plugin.Relay // nil where the CLI starts bridges itself
	host    *plugin.Host  // nil where it starts the host of the program itself
	redact  *redact.Redactor
	command *command
	stack   auto.Stack
	// outdated says that the last plan found the infrastructure other than the checkpoint has it.
	outdated bool

	mu      sync.Mutex
	unsaved []byte
	closed  bool
}

// Open waits for a free slot, makes the run's folder, and returns it. Close gives both back. An error is an *failure.Error: a wait that ctx
// or the engine's Close ended is Interrupted, one of values that Pulumi can't be given is InvalidConfiguration, and another that can't be is
// Unknown: no providerSpec is the cause.
func (e *Engine) Open(ctx context.Context, r RunSpec) (*Workspace, error) {
	redactor := e.redactor(r)
	failed := func(class failure.Class, err error) *failure.Error {
		return &failure.Error{Op: failure.OpOpen, Class: class, Err: redactor.Error(err)}
	}
	if err := errors.Join(r.validate(), e.options.Sandbox.Check()); err != nil {
		return nil, failed(failure.Unknown, err)
	}
	if err := checkReserved(r.Variables); err != nil {
		return nil, failed(failure.InvalidConfiguration, err)
	}
	if err := r.checkKey(); err != nil {
		return nil, failed(failure.Unknown, err) // no configuration fixes this
	}
	slot, err := e.acquire(ctx)
	if err != nil {
		return nil, failed(failure.Interrupted, err)
	}
	f := &Workspace{
		engine: e, slot: slot, run: r, dir: filepath.Join(e.runs(), r.ID),
		redact: redactor,
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		e.slots <- slot
		if errors.Is(err, os.ErrExist) {
			err = errors.New("its folder exists: it is open already, or abandoned and not discarded")
		}
		return nil, failed(failure.Unknown, err)
	}
	if err := f.fill(ctx); err != nil {
		return nil, failed(failure.Unknown, errors.Join(err, f.Close()))
	}
	return f, nil
}

// redactor returns what removes sensitive strings, and the paths of single runs and processes, from what is reported.
func (e *Engine) redactor(r RunSpec) *redact.Redactor {
	sensitive := r.Sensitive
	if r.Key != nil {
		sensitive = append([]string{r.Key.passphrase, r.Key.token(r.ID), base64.StdEncoding.EncodeToString(r.Key.derived)}, sensitive...)
	}
	return redact.New(sensitive).About(r.Secret).Inside(e.dir, []string{"runs", "t", hosts}, []string{programDir})
}

func (f *Workspace) path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

func (f *Workspace) stateFile() string { return stateFile(f.dir, f.run.Project) }

// temporary is where plugins put their sockets, so its path is short.
func (f *Workspace) temporary() string {
	return filepath.Join(f.engine.temporary(), strconv.Itoa(f.slot))
}

// socket is where the run's key is served.
func (f *Workspace) socket() string { return filepath.Join(f.temporary(), "key") }

// fill writes what the CLI finds, by hand where a command of its own would write it: each costs a process.
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
	if err := f.serveProgram(ctx); err != nil {
		return err
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

// serve begins to serve what the CLI gets from this process: its key, and bridges.
func (f *Workspace) serve(key bool) (err error) {
	if key {
		if f.key, err = serveKey(f.socket(), f.run.Key, f.run.Key.token(f.run.ID)); err != nil {
			return err
		}
	}
	// Bridges that are kept running would look for this run's files in later runs.
	if f.engine.bridges != nil && len(f.files) == 0 {
		f.relay, err = f.engine.bridges.Serve(f.engine.pluginEnvironment(f.run), f.run.owner())
	}
	return err
}

// inYAML matches the project of a program in YAML, as it is written. Where it is written in another way the CLI starts the host.
var inYAML = regexp.MustCompile(`(?m)^runtime: *` + plugin.Language + ` *$`)

// serveProgram has a host of programs run this one, where one is kept.
func (f *Workspace) serveProgram(ctx context.Context) error {
	if f.engine.hosts == nil || len(f.files) > 0 { // as with bridges
		return nil
	}
	project, err := os.ReadFile(f.path(programDir, projectFile))
	if err != nil || !inYAML.Match(project) {
		return nil //nolint:nilerr // what is wrong with the project the CLI reports
	}
	f.host, err = f.engine.hosts.Serve(ctx, f.engine.pluginEnvironment(f.run), f.run.owner(), f.path(programDir))
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
		binary: f.engine.options.Binary, environment: environmentOf(f.engine.environment(f)), waitDelay: f.engine.options.WaitDelay, starts: &f.engine.starts,
		pipe: f.path(eventsPipe), sandbox: f.engine.options.Sandbox,
		policy: sandbox.Policy{Read: f.engine.readable, Write: []string{f.dir, f.temporary()}},
	}
	if f.host != nil {
		f.command.policy.Read = append(slices.Clone(f.engine.readable), f.host.Folder())
	}
	workspace, err := auto.NewLocalWorkspace(ctx, auto.WorkDir(f.path(programDir)), auto.PulumiHome(f.path("home")), auto.Pulumi(f.command))
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	if f.stack, err = auto.SelectStack(ctx, StackName, workspace); err != nil {
		return fmt.Errorf("opening the stack: %w", err)
	}
	return nil
}

// writeProgram copies a program. It may not have files that this package writes.
func writeProgram(r RunSpec, dir string) error {
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
		return errors.Join(err, errors.New("it has settings of a stack (Pulumi.*.yaml), which are the operator's to write"))
	}
	return errors.Join(writeOut(r, filepath.Join(dir, projectFile)), os.Chmod(dir, 0o700))
}

// variableLocals is the variable with the values that a program may repeat something for.
const variableLocals = "locals"

// writeOut writes out what a program repeats. Whatever else is wrong with it Pulumi reports.
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

// Unsaved returns the checkpoint that Save did not take, nil where there is none. It must be saved before the run is closed: it may be
// all that is known of an object.
func (f *Workspace) Unsaved() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unsaved
}

// Keep gives the slot back and leaves the folder with the checkpoint that could not be saved, but without the run's secrets. Leftovers
// lists it from then on, also those of the next Engine in this work folder. Close does nothing afterwards.
func (f *Workspace) Keep() error {
	return f.end(func() error {
		f.engine.leave(f.run.ID)
		return strip(f.dir)
	})
}

// Close removes the folder with everything in it, and gives the slot back. It may be called again.
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
	err := errors.Join(f.key.close(), f.relay.Close(), f.host.Close(), tidy(), os.RemoveAll(f.temporary()))
	f.engine.slots <- f.slot
	return f.redact.Error(err)
}
