package iac

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// beside checks and repairs drift with the configuration applied last, while the Machine's update
// cannot be made. Results are reported as usual, but the verb still returns why the update cannot
// be made. trying reports whether an update was submitted that backs off after a failure.
func (a *Actuator) beside(ctx context.Context, o *observation, trying bool) {
	wanted := o.choice.State
	if o.asked != runs.Update || !o.facts.Exists() || wanted != nil && o.facts.Settled(wanted.Fingerprint) {
		return
	}
	with, facts := *o, *o.facts
	facts.Run = nil
	if run, known := a.pool.Status(runs.Key(o.machine.UID)); known { // the verb may have submitted a run
		facts.Run = &run
	}
	if facts.Active() {
		return
	}
	with.facts = &facts
	if d := a.decideBeside(ctx, &with, trying); d.Action == lifecycle.ActionStart {
		_ = a.submit(&with, d) // the verb returns its own error instead
	} else if d.Action == lifecycle.ActionLook {
		a.look(&with)
	}
}

// decideBeside returns the decision beside an update that cannot be made, and puts the
// configuration applied last into the observation.
func (a *Actuator) decideBeside(ctx context.Context, o *observation, trying bool) lifecycle.Decision {
	applied, err := a.desired.Applied(ctx, o.machine, o.facts)
	if err != nil {
		a.logger.V(1).Info("Skipping the drift check: the configuration applied last is unavailable",
			"Machine", client.ObjectKeyFromObject(o.machine).String(), "reason", err.Error())
		return lifecycle.Decision{Action: lifecycle.ActionDone, Reason: err.Error()}
	}
	o.choice = desired.Choice{State: applied}
	t := a.target(o)
	t.Trying = trying
	return lifecycle.DecideBeside(o.facts, t)
}
