package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pulumirunner "github.com/machine-iac/machine-iac-operator/actuators/pulumi"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/actuators/terraform"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
)

// newRunners returns a runner for each engine that is found, and has the manager check whether they can run. OpenTofu or Terraform is required, Pulumi is optional.
func newRunners(ctx context.Context, o options, live client.Client, mgr manager.Manager, leader *leading) (map[v1alpha1.Engine]runner.Runner, error) {
	confined, err := newSandbox(o)
	if err != nil {
		return nil, err
	}
	check, runners := newEngineCheck(o.workDir, confined), map[v1alpha1.Engine]runner.Runner{}
	if o.jobs.place == inJobs {
		if runners[v1alpha1.EngineTerraform], err = newJobs(ctx, o, live, leader); err != nil {
			return nil, err
		}
	} else {
		withTofu, err := newTofu(ctx, o, confined)
		if err != nil {
			return nil, err
		}
		check.programs = append(check.programs, withTofu.Binary().Path)
		backend := backend.New(backend.Options{Logger: ctrl.Log.WithName("state-backend")})
		runners[v1alpha1.EngineTerraform] = terraform.New(withTofu, backend)
	}
	withPulumi, err := newPulumi(ctx, o, confined)
	if err != nil {
		return nil, err
	}
	if withPulumi != nil {
		keys, err := pulumikeys.New(live, pulumikeys.Options{Namespace: o.leaseNamespace})
		if err != nil {
			return nil, err
		}
		runners[v1alpha1.EnginePulumi] = pulumirunner.New(withPulumi, keys)
		check.programs = append(check.programs, withPulumi.Binary().Path)
	}
	for name, one := range runners {
		metrics.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "machine_iac_engine_starts_total", Help: "Processes of the engine's CLI that were started.",
			ConstLabels: prometheus.Labels{"engine": reporting.EngineLabel(name)},
		}, func() float64 { return float64(one.Starts()) }))
	}
	return runners, check.add(mgr)
}

// labels returns the metric labels of the engines.
func labels(runners map[v1alpha1.Engine]runner.Runner) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(runners)) {
		found = append(found, reporting.EngineLabel(name))
	}
	return found
}

func newTofu(ctx context.Context, o options, confined *sandbox.Sandbox) (*tofu.Engine, error) {
	binary, err := tofu.Find(ctx, tofu.FindOptions{
		Path: o.enginePath, Name: o.engine, Constraint: o.engineVersion, Install: o.engineInstall, InstallDir: o.workDir,
	})
	if err != nil {
		return nil, err
	}
	ctrl.Log.Info("Found an engine", "engine", binary.String())
	return tofu.New(tofu.Options{
		Binary:         binary,
		WorkDir:        o.workDir,
		ProviderMirror: o.providerMirror,
		AllowDirect:    o.allowDownloads,
		Environment:    o.engineEnvironment,
		Sandbox:        confined,
		Slots:          o.maxRuns,
		WaitDelay:      o.interruptGrace,
		Warm:           provider.Options{Max: o.warmProviders, Memory: o.warmShare()},
		Logger:         ctrl.Log.WithName("engine"),
	})
}

// newPulumi returns nil when --pulumi is not set and Pulumi is not on PATH.
func newPulumi(ctx context.Context, o options, confined *sandbox.Sandbox) (*pulumi.Engine, error) {
	path := o.pulumi
	if path == "" {
		found, err := exec.LookPath("pulumi")
		if errors.Is(err, exec.ErrNotFound) {
			ctrl.Log.Info("Pulumi is not on PATH and --pulumi is not set; Machines of stacks wait")
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("looking for pulumi: %w; set --pulumi", err)
		}
		path = found
	}
	binary, err := pulumi.Find(ctx, path)
	if err != nil {
		return nil, err
	}
	ctrl.Log.Info("Found an engine", "engine", "pulumi "+binary.Version.String(), "path", binary.Path)
	return pulumi.New(pulumi.Options{
		Binary:         binary,
		WorkDir:        filepath.Join(o.workDir, "pulumi"),
		Plugins:        o.pulumiPlugins,
		ProviderMirror: o.providerMirror,
		Environment:    o.engineEnvironment,
		Sandbox:        confined,
		Slots:          o.maxRuns,
		WaitDelay:      o.interruptGrace,
		Warm:           provider.Options{Max: o.warmProviders, Memory: o.warmShare()},
		Logger:         ctrl.Log.WithName("pulumi"),
	})
}
