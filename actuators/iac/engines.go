package iac

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// noEngine is what series have for the engine of a run that needs none.
const noEngine = "none"

// engines answers the engines that there are runners for, sorted.
func (a *Actuator) engines() []v1alpha1.Engine { return slices.Sorted(maps.Keys(a.runners)) }

// close closes all runners.
func (a *Actuator) close(ctx context.Context) error {
	var errs []error
	for _, name := range a.engines() {
		errs = append(errs, a.runners[name].Close(ctx))
	}
	return errors.Join(errs...)
}

// Label answers what series have for an engine.
func Label(name v1alpha1.Engine) string { return strings.ToLower(string(name)) }

// engine answers what series have for the engine of what a Machine asks for.
func (d *desired) engine() string {
	if d == nil {
		return noEngine
	}
	return Label(d.module.Engine())
}

// runner answers who carries out the run. An instance stays with the engine that made it: no other can read its state.
func (t *task) runner(ctx context.Context) (runner.Runner, error) {
	wanted := t.wanted.module.Engine()
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
			"name a module of that engine again, or make a new Machine", made, t.wanted.module.Name(), wanted)
	}
	with, known := t.actuator.runners[wanted]
	if !known {
		return nil, fmt.Errorf("module %s runs on %s, which this operator runs without; start it with --pulumi or --engine-path, or name another module",
			t.wanted.module.Name(), wanted)
	}
	return with, nil
}

// engineOfState answers the engine whose state it is; nothing where there is no state yet.
func engineOfState(snapshot *state.Snapshot) (v1alpha1.Engine, error) {
	if snapshot.Raw == nil {
		return "", nil
	}
	parsed, err := snapshot.State()
	if err != nil {
		return "", fmt.Errorf("reading the Machine's state: %w", err)
	}
	if parsed.Format == state.FormatPulumi {
		return v1alpha1.EnginePulumi, nil
	}
	return v1alpha1.EngineTerraform, nil
}

// of answers the fingerprint, empty for a Machine that cannot be rendered.
func (d *desired) of() string {
	if d == nil {
		return ""
	}
	return d.fingerprint
}
