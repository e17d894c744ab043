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
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// noEngine is the label for the engine of a run that needs none.
const noEngine = "none"

// engines returns the engines that there are runners for, sorted.
func (a *Actuator) engines() []v1alpha1.Engine { return slices.Sorted(maps.Keys(a.runners)) }

// closeRunners closes all runners.
func (a *Actuator) closeRunners(ctx context.Context) error {
	var errs []error
	for _, name := range a.engines() {
		errs = append(errs, a.runners[name].Close(ctx))
	}
	return errors.Join(errs...)
}

// engineOf returns the label for the engine of a desired state, which may be nil.
func engineOf(wanted *desired.State) string {
	if wanted == nil {
		return noEngine
	}
	return reporting.EngineLabel(wanted.Module.Engine())
}

// runner returns what carries out the run. An instance stays with the engine that made it: no other can read its state.
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
		return nil, actuators.UnsupportedChange("the instance was made with %s and stays with it, but module %s runs on %s; "+
			"name a module of that engine again, or make a new Machine", made, t.wanted.Module.Name(), wanted)
	}
	with, known := t.actuator.runners[wanted]
	if !known {
		return nil, fmt.Errorf("module %s runs on %s, which this operator runs without; start it with --pulumi or --engine-path, or name another module",
			t.wanted.Module.Name(), wanted)
	}
	return with, nil
}

// engineOfState returns the engine whose state it is; empty where there is no state yet.
func engineOfState(snapshot *state.Snapshot) (v1alpha1.Engine, error) {
	if snapshot.Raw == nil {
		return "", nil
	}
	parsed, err := snapshot.State()
	if err != nil {
		return "", fmt.Errorf("reading the Machine's state: %w", err)
	}
	if parsed.Format == statefile.FormatPulumi {
		return v1alpha1.EnginePulumi, nil
	}
	return v1alpha1.EngineTerraform, nil
}
