package iac

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// noEngine is the engine label of a run that needs no engine.
const noEngine = "none"

// engines returns the engines that have runners, sorted.
func (a *Actuator) engines() []v1alpha1.Engine { return slices.Sorted(maps.Keys(a.runners)) }

func (a *Actuator) closeRunners(ctx context.Context) error {
	var errs []error
	for _, name := range a.engines() {
		errs = append(errs, a.runners[name].Close(ctx))
	}
	return errors.Join(errs...)
}

// engineOf returns the engine label of a desired state, which may be nil.
func engineOf(wanted *desired.State) string {
	if wanted == nil {
		return noEngine
	}
	return reporting.EngineLabel(wanted.Module.Engine())
}

// runner returns the runner of the run. An instance stays with the engine that created it, because
// no other can read its state.
func (t *task) runner(ctx context.Context) (runner.Runner, error) {
	wanted := t.wanted.Module.Engine()
	snapshot, err := t.session.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	made, err := engineOfState(snapshot)
	if err != nil {
		return nil, err
	}
	if cmp.Or(made, wanted) != wanted {
		return nil, actuators.UnsupportedChange("the instance was created with %s and cannot change engines, but module "+
			"%s runs on %s; "+
			"choose a module of that engine, or create a new Machine", made, t.wanted.Module.Name(), wanted)
	}
	with, known := t.actuator.runners[wanted]
	if !known {
		return nil, fmt.Errorf("module %s needs %s, which is not enabled; start the operator with --pulumi or "+
			"--engine-path, or choose another module",
			t.wanted.Module.Name(), wanted)
	}
	return with, nil
}

// engineOfState returns the engine of a state, or "" without a state.
func engineOfState(snapshot *state.Snapshot) (v1alpha1.Engine, error) {
	if snapshot.Raw == nil {
		return "", nil
	}
	parsed, err := snapshot.State()
	if err != nil {
		return "", fmt.Errorf("reading the Machine's state: %w", err)
	}
	return module.EngineOfState(parsed.Format), nil
}
