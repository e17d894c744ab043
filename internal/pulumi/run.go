package pulumi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// Run describes one use of a program.
type Run struct {
	// ID names the run's folder; it is unique among the runs that are open.
	ID string
	// Identity is kept with the run as JSON, for whoever finds its folder after a crash. No secrets.
	Identity any
	// Project is the name in the program's Pulumi.yaml. Configuration is named after it, and so is all that it makes.
	Project string
	// Program is the folder with Pulumi.yaml.
	Program fs.FS
	// Variables are the program's configuration: one JSON object. Its strings are data, never templates.
	Variables []byte
	// Secret are the names of variables that are encrypted in the configuration, and so in the checkpoint.
	Secret []string
	// Environment is added to the engine's, for example credentials of the infrastructure.
	Environment map[string]string
	// Key encrypts what is secret.
	Key *Key
	// Checkpoint is what is known of the stack; nil for nothing.
	Checkpoint []byte
	// Save is given each checkpoint that the CLI writes, in order, the last one before an operation returns. An error of the last one
	// fails the operation; one before it is made good by the next.
	Save func(ctx context.Context, checkpoint []byte) error
	// Lookup runs the program in the folder lookup/ in place of the program itself.
	Lookup bool
	// Sensitive are strings that must not show in anything that is reported.
	Sensitive []string
	// Progress, if set, is told what the CLI does while it does it. It must not block.
	Progress func(engine.Event)
}

const (
	projectFile  = "Pulumi.yaml"
	lookupFolder = "lookup"
)

var runIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

var projectPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

func (r Run) validate() error {
	if !runIDPattern.MatchString(r.ID) {
		return fmt.Errorf("the run id %q can't name a folder; use letters, digits and ._-", r.ID)
	}
	if !projectPattern.MatchString(r.Project) {
		return fmt.Errorf("the project %q can't name a stack's project; use letters, digits and ._-", r.Project)
	}
	if r.Program == nil || r.Key == nil || r.Save == nil {
		return errors.New("the run has no program, no key or nobody who saves its checkpoints")
	}
	if r.Checkpoint != nil {
		if _, err := readCheckpoint(r.Checkpoint); err != nil {
			return err
		}
	}
	return checkEnvironment(r.Environment)
}

// Folder is an open run. Its methods run one CLI at a time; each answers a Report, also with an error.
type Folder struct {
	engine    *Engine
	run       Run
	dir       string
	temporary string
	redact    *engine.Redactor
	command   *command
	stack     auto.Stack

	mu      sync.Mutex
	unsaved []byte
	closed  bool
}

// Open makes the run's folder, and answers it. Close removes it. An error is an *engine.Error.
func (e *Engine) Open(ctx context.Context, r Run) (*Folder, error) {
	failed := func(class engine.Class, err error) *engine.Error {
		return &engine.Error{Op: engine.OpOpen, Class: class, Err: fmt.Errorf("%s: %w", r.ID, err)}
	}
	if err := r.validate(); err != nil {
		return nil, failed(engine.InvalidConfiguration, err)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, failed(engine.Interrupted, err)
	}
	f := &Folder{
		engine: e, run: r, dir: filepath.Join(e.runs(), r.ID),
		redact: engine.NewRedactor(append([]string{r.Key.passphrase}, r.Sensitive...)),
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			err = errors.New("its folder exists: it is open already, or left over")
		}
		return nil, failed(engine.Unknown, err)
	}
	if err := f.fill(ctx); err != nil {
		return nil, failed(engine.Unknown, errors.Join(err, f.Close()))
	}
	return f, nil
}

func (f *Folder) path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

func (f *Folder) stateFile() string { return stateFile(f.dir, f.run.Project) }

// fill writes what the CLI finds, by hand where a command of its own would write it: each costs a process.
func (f *Folder) fill(ctx context.Context) (err error) {
	if err := f.record(); err != nil {
		return err
	}
	if f.temporary, err = os.MkdirTemp(f.engine.temporary(), ""); err != nil {
		return err
	}
	if err := writeProgram(f.run, f.path("program")); err != nil {
		return fmt.Errorf("writing the program: %w", err)
	}
	settings, err := f.run.settings(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path("program", "Pulumi."+StackName+".yaml"), settings, 0o600); err != nil {
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

func (f *Folder) writeBackend() error {
	if err := os.MkdirAll(filepath.Dir(f.stateFile()), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(f.path("backend", ".pulumi", "meta.yaml"), []byte("version: 1\n"), 0o600); err != nil {
		return err
	}
	state := f.run.Checkpoint
	if state == nil {
		state = emptyCheckpoint(f.run.Project)
	}
	return os.WriteFile(f.stateFile(), state, 0o600)
}

func (f *Folder) open(ctx context.Context) error {
	environment, err := environmentOf(f.engine.environment(f))
	if err != nil {
		return err
	}
	f.command = &command{
		binary: f.engine.options.Binary, environment: environment, waitDelay: f.engine.options.WaitDelay, starts: &f.engine.starts,
	}
	workspace, err := auto.NewLocalWorkspace(ctx, auto.WorkDir(f.path("program")), auto.PulumiHome(f.path("home")), auto.Pulumi(f.command))
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	f.stack, err = auto.SelectStack(ctx, StackName, workspace)
	return err
}

// writeProgram copies a program. Nothing in it may stand where this package puts something.
func writeProgram(r Run, dir string) error {
	if err := os.CopyFS(dir, r.Program); err != nil {
		return err
	}
	if r.Lookup {
		if err := os.Rename(filepath.Join(dir, lookupFolder, projectFile), filepath.Join(dir, projectFile)); err != nil {
			return err
		}
	}
	settings, err := filepath.Glob(filepath.Join(dir, "Pulumi.*.yaml"))
	if err != nil || len(settings) > 0 {
		return errors.Join(err, errors.New("it has settings of a stack (Pulumi.*.yaml), which are the operator's to write"))
	}
	return os.Chmod(dir, 0o700)
}

// settings answers the stack's settings. JSON is YAML.
func (r Run) settings(ctx context.Context) ([]byte, error) {
	var variables map[string]json.RawMessage
	if err := json.Unmarshal(r.Variables, &variables); err != nil {
		return nil, errors.New("the run's variables are no JSON object")
	}
	for _, name := range r.Secret {
		var plain string
		if err := json.Unmarshal(variables[name], &plain); err != nil {
			return nil, fmt.Errorf("the variable %s is secret and no string", name)
		}
		sealed, err := r.Key.seal(ctx, plain)
		if err != nil {
			return nil, fmt.Errorf("encrypting the variable %s: %w", name, err)
		}
		raw, err := json.Marshal(map[string]string{"secure": sealed})
		if err != nil {
			return nil, fmt.Errorf("encrypting the variable %s: %w", name, err)
		}
		variables[name] = raw
	}
	configuration := map[string]json.RawMessage{}
	for name, value := range variables {
		configuration[r.Project+":"+name] = value
	}
	settings, err := json.Marshal(map[string]any{"encryptionsalt": r.Key.salt, "config": configuration})
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return settings, nil
}

// Unsaved answers the checkpoint that Save did not take, nil where there is none. It must be saved before the run is closed: it may be
// all that is known of an object.
func (f *Folder) Unsaved() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unsaved
}

// Close removes the folder with everything in it. It may be called again.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if f.temporary == "" || !strings.HasPrefix(f.temporary, f.engine.temporary()) {
		return os.RemoveAll(f.dir)
	}
	return errors.Join(os.RemoveAll(f.dir), os.RemoveAll(f.temporary))
}
