package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/machine-iac/machine-iac-operator/actuators/remote"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/actuators/terraform"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/supervisor"
	"github.com/machine-iac/machine-iac-operator/internal/logs"
)

const (
	// runCommand is the first argument of a run's process.
	runCommand = "run"
	// workPatience bounds how long such a process may take to exit when its manager is gone.
	workPatience = 2 * time.Minute
)

// work executes one run for a manager. It is the command of a Job's Pod.
func work(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet(programName+" "+runCommand, flag.ContinueOnError)
	var logging zap.Options
	ticketDir := flags.String("ticket", "", "Folder with the run's ticket.")
	workDir := flags.String("work-dir", "", "Private folder of the run.")
	logging.BindFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if *ticketDir == "" || *workDir == "" || flags.NArg() > 0 {
		return errors.New("a run's process takes only --ticket and --work-dir; the manager starts it with --runs-in=jobs")
	}
	if err := sandbox.Hide(); err != nil {
		return err
	}
	ctrl.SetLogger(logs.WithoutBodies(zap.New(zap.UseFlagOptions(&logging))))
	ticket, err := remote.ReadTicket(*ticketDir)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return remote.Work(ctx, remote.WorkOptions{
		Ticket: ticket, Patience: workPatience, Logger: ctrl.Log.WithName("run"),
		Make: func(opening context.Context, given remote.Given) (runner.Runner, error) {
			made, err := makeEngine(opening, *workDir, given)
			if err != nil {
				return nil, err
			}
			go func() {
				select {
				case failed := <-made.guard.Failed():
					stop(failed)
				case <-ctx.Done():
				}
			}()
			return made, nil
		},
	})
}

// guarded is an engine that its supervisor stops when the manager is gone. It rewrites the
// manager's file paths to those of the local copies.
type guarded struct {
	*terraform.Runner
	guard *supervisor.Supervisor
	here  *strings.Replacer
}

// makeEngine creates the engine of one run and its supervisor.
func makeEngine(ctx context.Context, workDir string, given remote.Given) (_ *guarded, err error) {
	var settings runSettings
	if err := json.Unmarshal(given.Settings, &settings); err != nil {
		return nil, fmt.Errorf("reading the manager's settings, perhaps of another version: %w", err)
	}
	o := options{
		workDir: workDir, engine: settings.Engine, enginePath: settings.EnginePath, engineVersion: settings.EngineVersion,
		engineInstall:  settings.EngineInstall,
		providerMirror: settings.ProviderMirror, allowDownloads: settings.AllowDownloads, sandbox: settings.Sandbox,
		interruptGrace: settings.InterruptGrace, maxRuns: 1,
	}
	guard, err := supervisor.Start(ctx, supervisor.Options{
		Dir: workDir, Timeout: given.Life, Grace: settings.Grace, Active: given.Active,
		Logger: ctrl.Log.WithName("supervisor"),
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, guard.Stop())
		}
	}()
	guard.Heartbeat()
	here, err := writeFiles(authoritiesDir(o), settings.Files)
	if err != nil {
		return nil, err
	}
	o.engineEnvironment = rewritten(settings.Environment, here)
	for _, path := range settings.SandboxRead {
		o.sandboxRead = append(o.sandboxRead, here.Replace(path))
	}
	confined, err := newSandbox(o)
	if err != nil {
		return nil, err
	}
	with, err := newTofu(ctx, o, confined)
	if err != nil {
		return nil, err
	}
	return &guarded{Runner: terraform.New(with, given.States), guard: guard, here: here}, nil
}

// writeFiles writes files of the manager into a folder, and returns a replacer for their paths.
func writeFiles(dir string, files map[string][]byte) (*strings.Replacer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of the engines' files: %w", err)
	}
	paths := slices.Sorted(maps.Keys(files))
	slices.Reverse(paths) // longer paths before their prefixes
	var pairs []string
	for i, path := range paths {
		own := filepath.Join(dir, strconv.Itoa(i)+"-"+filepath.Base(path))
		if err := os.WriteFile(own, files[path], 0o600); err != nil {
			return nil, fmt.Errorf("writing the engines' files: %w", err)
		}
		pairs = append(pairs, path, own)
	}
	return strings.NewReplacer(pairs...), nil
}

func rewritten(environment map[string]string, here *strings.Replacer) map[string]string {
	own := make(map[string]string, len(environment))
	for name, value := range environment {
		own[name] = here.Replace(value)
	}
	return own
}

// Open implements runner.Runner.
func (g *guarded) Open(ctx context.Context, run runner.RunSpec) (runner.Workspace, error) {
	return g.Runner.Open(ctx, g.local(run))
}

// CheckInstance implements runner.InstanceChecker.
func (g *guarded) CheckInstance(ctx context.Context, run runner.RunSpec, stored []byte) (bool, error) {
	return g.Runner.CheckInstance(ctx, g.local(run), stored)
}

func (g *guarded) local(run runner.RunSpec) runner.RunSpec {
	run.Environment, run.InitEnvironment = rewritten(run.Environment, g.here), rewritten(run.InitEnvironment, g.here)
	return run
}

// Close implements runner.Runner.
func (g *guarded) Close(ctx context.Context) error {
	return errors.Join(g.Runner.Close(ctx), g.guard.Kill(), g.guard.Stop())
}
