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

// engines has the runner of every engine.
var engines = []struct {
	name v1alpha1.Engine
	// create returns the runner and the program that it starts here. The runner is nil for an optional engine that is
	// not found. The program is empty if the engine runs elsewhere.
	create func(context.Context, runnerParts) (runner.Runner, string, error)
}{
	{v1alpha1.EngineTerraform, newTofuRunner},
	{v1alpha1.EnginePulumi, newPulumiRunner},
}

// runnerParts is what runners are made of.
type runnerParts struct {
	options
	live     client.Client
	leader   *leading
	confined *sandbox.Sandbox
}

// newRunners returns a runner for each engine found, and adds their checks to the manager. OpenTofu
// or Terraform is required, Pulumi is optional.
func newRunners(ctx context.Context, o options, live client.Client, mgr manager.Manager,
	leader *leading) (map[v1alpha1.Engine]runner.Runner, error) {
	confined, err := newSandbox(o)
	if err != nil {
		return nil, err
	}
	check, runners := newEngineCheck(o.workDir, confined), map[v1alpha1.Engine]runner.Runner{}
	parts := runnerParts{options: o, live: live, leader: leader, confined: confined}
	for _, engine := range engines {
		one, program, err := engine.create(ctx, parts)
		if err != nil {
			return nil, err
		}
		if one == nil {
			continue
		}
		runners[engine.name] = one
		if program != "" {
			check.programs = append(check.programs, program)
		}
		metrics.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "machine_iac_engine_starts_total", Help: "Engine CLI processes started.",
			ConstLabels: prometheus.Labels{"engine": reporting.EngineLabel(engine.name)},
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

func newTofuRunner(ctx context.Context, parts runnerParts) (runner.Runner, string, error) {
	if parts.jobs.place == inJobs {
		one, err := newJobs(ctx, parts.options, parts.live, parts.leader)
		return one, "", err
	}
	with, err := newTofu(ctx, parts.options, parts.confined)
	if err != nil {
		return nil, "", err
	}
	states := backend.New(backend.Options{Logger: ctrl.Log.WithName("state-backend")})
	return terraform.New(with, states), with.Binary().Path, nil
}

func newPulumiRunner(ctx context.Context, parts runnerParts) (runner.Runner, string, error) {
	with, err := newPulumi(ctx, parts.options, parts.confined)
	if err != nil || with == nil {
		return nil, "", err
	}
	keys, err := pulumikeys.New(parts.live, pulumikeys.Options{Namespace: parts.keysNamespace})
	if err != nil {
		return nil, "", err
	}
	return pulumirunner.New(with, keys), with.Binary().Path, nil
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
		Slots:          o.maxRuns + o.idleRuns(),
		WaitDelay:      o.interruptGrace,
		Warm:           provider.Options{Max: o.warmProviders, Memory: o.warmShare()},
		Logger:         ctrl.Log.WithName("engine"),
	})
}

// newPulumi returns nil if --pulumi is not set and Pulumi is not on PATH.
func newPulumi(ctx context.Context, o options, confined *sandbox.Sandbox) (*pulumi.Engine, error) {
	path := o.pulumi
	if path == "" {
		found, err := exec.LookPath("pulumi")
		if errors.Is(err, exec.ErrNotFound) {
			ctrl.Log.Info("Machines of stacks wait: pulumi is not on PATH and --pulumi is not set")
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
