package main

import (
	"fmt"
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
)

// newSandbox returns what confines engines, nil where nothing does.
func newSandbox(o options) (*sandbox.Sandbox, error) {
	hidden := []string{o.workDir}
	if o.kubeconfig != "" {
		hidden = append(hidden, o.kubeconfig)
	}
	confined, err := sandbox.New(sandbox.Options{
		Mode: o.sandbox, Read: slices.Concat(o.sandboxRead, sandbox.Named(o.engineEnvironment)), Hidden: hidden,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: see --sandbox-read and --engine-env", err)
	}
	log := ctrl.Log.WithName("sandbox")
	switch {
	case o.sandbox == sandbox.Off:
		log.Info("Engines are not confined: --sandbox=off. A provider can read the token of the service account and the credentials of other runs")
	case confined.Check() != nil:
		log.Error(confined.Check(), "No run is started")
	case confined.ABI() == 0:
		log.Info("Engines are not confined to their files: the kernel has no Landlock. A provider can read the token of the service account and the credentials of other runs; --sandbox=required starts no run then")
	default:
		log.Info("Engines are confined to the files of their runs", "landlock", confined.ABI())
	}
	metrics.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "machine_iac_engine_landlock_version",
		Help: "Version of the kernel's Landlock that confines engines; zero where they are not confined to their files.",
	}, func() float64 { return float64(confined.ABI()) }))
	return confined.Reading(authoritiesDir(o)), nil
}

// authoritiesDir is the folder with the cluster's certificate authorities, which engines read.
func authoritiesDir(o options) string { return filepath.Join(o.workDir, "authorities") }

// checkInterval is how old the outcome of an engineCheck may be.
const checkInterval = 30 * time.Second

// engineCheck reports whether engines can run. A probe gets the outcome that is known, so that no slow disk holds it up.
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

// add has the manager serve the check.
func (c *engineCheck) add(mgr manager.Manager) error {
	c.look()
	if err := mgr.AddReadyzCheck("engines", c.ready); err != nil {
		return fmt.Errorf("adding the readiness check of the engines: %w", err)
	}
	return nil
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
			return fmt.Errorf("an engine is gone: %w; start the manager again with one that is there", err)
		}
		if !found.Mode().IsRegular() || found.Mode()&0o111 == 0 {
			return fmt.Errorf("the engine %s is no program that can be started", program)
		}
	}
	file, err := os.CreateTemp(c.workDir, ".ready-")
	if err != nil {
		return fmt.Errorf("the work folder cannot be written: %w; see --work-dir", err)
	}
	_, err = file.Write([]byte{0}) // a full disk has room for names
	for _, err := range []error{err, file.Close(), os.Remove(file.Name())} {
		if err != nil {
			return fmt.Errorf("the work folder cannot be written: %w; see --work-dir", err)
		}
	}
	return nil
}
