package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// newSandbox returns the sandbox of engines, or nil.
func newSandbox(o options) (*sandbox.Sandbox, error) {
	work, err := workdir.Make(o.workDir, "") // the same path as in the supervisor
	if err != nil {
		return nil, err
	}
	hidden := []string{o.workDir}
	if o.kubeconfig != "" {
		hidden = append(hidden, o.kubeconfig)
	}
	confined, err := sandbox.New(sandbox.Options{
		Mode: o.sandbox, Read: slices.Concat(o.sandboxRead, sandbox.Named(o.engineEnvironment)), Hidden: hidden, Work: work,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: see --sandbox-read and --engine-env", err)
	}
	log := ctrl.Log.WithName("sandbox")
	switch {
	case o.sandbox == sandbox.Off:
		log.Info("Engines are not confined (--sandbox=off): a provider can read the service account's token and the " +
			"credentials of other runs")
	case confined.Check() != nil:
		log.Error(confined.Check(), "Not starting any run")
	case confined.ABI() == 0:
		log.Info("Engines are not confined, because the kernel lacks Landlock: a provider can read the service account's " +
			"token and the credentials of other runs; set --sandbox=required to refuse such runs")
	default:
		log.Info("Confining engines to the files of their runs", "landlock", confined.ABI())
	}
	metrics.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "machine_iac_engine_sandbox_required",
		Help: "1 with --sandbox=required, else 0.",
	}, func() float64 {
		if o.sandbox == sandbox.Required {
			return 1
		}
		return 0
	}), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "machine_iac_engine_landlock_version",
		Help: "Landlock version that confines engines, or zero.",
	}, func() float64 { return float64(confined.ABI()) }))
	return confined.Reading(authoritiesDir(o)), nil
}

// authoritiesDir is the folder with the cluster's CA certificates, which engines read.
func authoritiesDir(o options) string { return filepath.Join(o.workDir, "authorities") }

// checkInterval is the maximum age of an engineCheck's result.
const checkInterval = 30 * time.Second

// engineCheck reports whether engines can run. A probe returns the last known result, so that no
// slow disk delays it.
type engineCheck struct {
	programs []string
	workDir  string
	confined *sandbox.Sandbox
	clock    clock.PassiveClock

	mu      sync.Mutex
	last    error
	at      time.Time
	looking bool
}

func newEngineCheck(workDir string, confined *sandbox.Sandbox, programs ...string) *engineCheck {
	return &engineCheck{programs: programs, workDir: workDir, confined: confined, clock: clock.RealClock{}}
}

// add registers the check with the manager.
func (c *engineCheck) add(mgr manager.Manager) error {
	c.look()
	if err := mgr.AddReadyzCheck("engines", c.ready); err != nil {
		return fmt.Errorf("adding the readiness check of the engines: %w", err)
	}
	if err := mgr.AddHealthzCheck("work-folder", newFolderCheck(c.workDir).alive); err != nil {
		return fmt.Errorf("adding the health check of the work folder: %w", err)
	}
	return nil
}

// folderCheck reports whether the work folder still has what the engines made in it at start. If a
// cleaner of temporary files empties it, only a restart makes it again.
type folderCheck []string

func newFolderCheck(workDir string) folderCheck {
	var found folderCheck
	for _, name := range []string{"modules", "runs", "slots", "no-providers", "cli.tfrc", "pulumi/runs", "pulumi/t"} {
		if path := filepath.Join(workDir, name); exists(path) {
			found = append(found, path)
		}
	}
	return found
}

// alive is a healthz.Checker.
func (c folderCheck) alive(*http.Request) error {
	for _, path := range c {
		if !exists(path) {
			return fmt.Errorf("%s was removed while the manager ran; restart it, and keep cleaners of temporary files away "+
				"from --work-dir", path)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// ready is a healthz.Checker.
func (c *engineCheck) ready(*http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.looking && c.clock.Since(c.at) > checkInterval {
		c.looking = true
		go c.look()
	}
	return c.last
}

func (c *engineCheck) look() {
	err := c.problem()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.at, c.looking = err, c.clock.Now(), false
}

// problem returns why engines cannot run.
func (c *engineCheck) problem() error {
	if err := c.confined.Check(); err != nil {
		return err
	}
	for _, program := range c.programs {
		found, err := os.Stat(program)
		if err != nil {
			return fmt.Errorf("an engine is missing: %w; restart the manager with an existing one", err)
		}
		if !found.Mode().IsRegular() || found.Mode()&0o111 == 0 {
			return fmt.Errorf("cannot execute engine %s", program)
		}
	}
	file, err := os.CreateTemp(c.workDir, ".ready-")
	if err != nil {
		return fmt.Errorf("cannot write to the work folder: %w; see --work-dir", err)
	}
	_, err = file.Write([]byte{0}) // a full disk can still hold an empty file
	for _, err := range []error{err, file.Close(), os.Remove(file.Name())} {
		if err != nil {
			return fmt.Errorf("cannot write to the work folder: %w; see --work-dir", err)
		}
	}
	return nil
}
