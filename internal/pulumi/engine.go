package pulumi

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// DefaultWaitDelay is the default of Options.WaitDelay.
const DefaultWaitDelay = 2 * time.Minute

// Options describe an Engine.
type Options struct {
	// Binary is the CLI, as answered by Find. The hosts of programs' languages (pulumi-language-yaml) lie beside it.
	Binary Binary
	// WorkDir is the private folder of the engine; it is made if absent. Its path is short: plugins put sockets into it.
	WorkDir string
	// Plugins is a folder with plugins as `pulumi plugin install` lays them out. It is only read, and there are no others.
	Plugins string
	// ProviderMirror is a folder in the layout of a filesystem mirror of Terraform's: what pulumi-resource-terraform-provider bridges.
	ProviderMirror string
	// Environment is set for every CLI. Nothing else of the operator's own environment reaches one.
	Environment map[string]string
	// WaitDelay is how long an interrupted CLI may take to end before it is killed; zero means DefaultWaitDelay.
	WaitDelay time.Duration
	Logger    logr.Logger
	// Clock tells the times in reports; nil means the machine's.
	Clock clock.PassiveClock
}

// Engine runs one CLI in a private work folder:
//
//	runs/<id>/program   the program and the stack's settings, with the configuration
//	runs/<id>/backend   the `file://` backend with the checkpoint
//	runs/<id>/run.json  whose run it is
//	runs/<id>/home      PULUMI_HOME, with a link to the shared plugins
//	t/<n>               temporary files of a run, under a short path
type Engine struct {
	options Options
	dir     string
	starts  atomic.Int64
}

// New makes the work folder, ends what a predecessor that died has left running in it, and answers an Engine.
func New(o Options) (*Engine, error) {
	if o.WaitDelay == 0 {
		o.WaitDelay = DefaultWaitDelay
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Binary.Path == "" || o.WorkDir == "" {
		return nil, errors.New("starting pulumi: it needs a binary and a work folder")
	}
	if o.WaitDelay < 0 {
		return nil, errors.New("starting pulumi: durations must not be negative")
	}
	if err := checkEnvironment(o.Environment); err != nil {
		return nil, fmt.Errorf("starting pulumi: %w", err)
	}
	e := &Engine{options: o}
	for _, path := range []*string{&o.WorkDir, &e.options.Plugins, &e.options.ProviderMirror} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, fmt.Errorf("starting pulumi: %w", err)
		}
		*path = absolute
	}
	e.dir = o.WorkDir
	if err := os.MkdirAll(e.runs(), 0o700); err != nil {
		return nil, fmt.Errorf("starting pulumi: %w", err)
	}
	if _, err := engine.EndProcesses(e.runs()); err != nil {
		return nil, fmt.Errorf("starting pulumi: ending the processes of a predecessor: %w", err)
	}
	if err := os.RemoveAll(e.temporary()); err != nil {
		return nil, fmt.Errorf("starting pulumi: %w", err)
	}
	if err := os.Mkdir(e.temporary(), 0o700); err != nil {
		return nil, fmt.Errorf("starting pulumi: %w", err)
	}
	return e, nil
}

func (e *Engine) runs() string      { return filepath.Join(e.dir, "runs") }
func (e *Engine) temporary() string { return filepath.Join(e.dir, "t") }

// Starts counts the CLI processes that were started so far.
func (e *Engine) Starts() int64 { return e.starts.Load() }

// reservedPrefixes are of names that would change what is run rather than with which credentials.
var reservedPrefixes = []string{"PULUMI_", "TF_", "LD_"}

// checkEnvironment refuses what a caller may not set.
func checkEnvironment(environment map[string]string) error {
	for name := range environment {
		for _, prefix := range reservedPrefixes {
			if strings.HasPrefix(name, prefix) {
				return fmt.Errorf("the environment variable %s is the engine's own; leave it out", name)
			}
		}
		if name == "HOME" || name == "TMPDIR" || name == "PATH" {
			return fmt.Errorf("the environment variable %s is the engine's own; leave it out", name)
		}
	}
	_, err := environmentOf(environment)
	return err
}

// environment is everything that the CLI of a run gets to see.
func (e *Engine) environment(f *Folder) map[string]string {
	// Many short processes run at once, so that one thread for each is enough.
	environment := map[string]string{"GOMAXPROCS": "1"}
	maps.Copy(environment, e.options.Environment)
	maps.Copy(environment, f.run.Environment)
	maps.Copy(environment, map[string]string{
		"HOME":                     f.path("home"),
		"PATH":                     filepath.Dir(e.options.Binary.Path),
		"TMPDIR":                   f.temporary,
		"PULUMI_HOME":              f.path("home"),
		"PULUMI_BACKEND_URL":       "file://" + f.path("backend"),
		"PULUMI_CONFIG_PASSPHRASE": f.run.Key.passphrase,
		"PULUMI_SKIP_UPDATE_CHECK": "true",
		"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION":   "true",
		"PULUMI_IGNORE_AMBIENT_PLUGINS":                 "true",
		"PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
		"PULUMI_DYNAMIC_TF_PLUGIN_CACHE_DIR":            e.options.ProviderMirror,
		"PULUMI_AUTOMATION_API":                         "true",
		// Lets the CLI tell its events.
		"PULUMI_DEBUG_COMMANDS": "true",
	})
	return environment
}
