package iac

import (
	"context"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	claims "github.com/machine-iac/machine-iac-operator/actuators/addresses"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// RecheckAfter implements actuators.Rechecker. It returns the time until the next check, look or
// second look, or a short delay while an address claim is pending.
func (a *Actuator) RecheckAfter(machine *machinev1beta1.Machine) time.Duration {
	status := readProviderStatus(machine)
	after := a.recheckAfter(machine, &status)
	if claims.Waiting(status.Conditions) && (after == 0 || after > claims.Retry) {
		return claims.Retry
	}
	return after
}

func (a *Actuator) recheckAfter(machine *machinev1beta1.Machine,
	status *v1alpha1.TerraformMachineProviderStatus) time.Duration {
	next := lifecycle.NewSchedule(machine, status, machine.Status.Addresses,
		a.interval).WithLook(a.looks.Known(machine.UID)).Next(status)
	if next.IsZero() {
		return 0
	}
	return max(minRequeue, next.Sub(a.clock.Now()))
}

// maxUnchanged bounds how long Unchanged may hold. A reconcile reads more than Unchanged compares,
// such as a stored module's content.
const maxUnchanged = time.Hour

// remember keeps the basis of a no-op decision for Unchanged. It drops the basis after any other
// decision, and if the decision depends on more than the basis covers.
func (a *Actuator) remember(o *observation, d lifecycle.Decision, outcome error) {
	check := o.facts.Record.Check
	if outcome != nil || o.asked != runs.Update || d.Action != lifecycle.ActionDone || o.facts.Run != nil || o.claims ||
		check != nil && check.Result != record.DriftNone {
		a.bases.Keep(o.machine.UID, nil, time.Time{})
		return
	}
	after := maxUnchanged
	if next := a.recheckAfter(o.machine, &o.status); next > 0 {
		after = min(after, next)
	}
	a.bases.Keep(o.machine.UID, o.choice.Basis(o.facts), a.clock.Now().Add(after))
}

// Unchanged implements actuators.UnchangedChecker.
func (a *Actuator) Unchanged(ctx context.Context,
	machine *machinev1beta1.Machine) (after time.Duration, unchanged bool) {
	basis, until := a.bases.Kept(machine.UID)
	_, run := a.pool.Status(runs.Key(machine.UID))
	after = until.Sub(a.clock.Now())
	// If something is due, nothing is read: due times differ between Machines, so a bulk read of
	// states would serve only one.
	if basis == nil || after <= 0 || run || a.looks.Known(machine.UID).Missed() ||
		!a.desired.Unchanged(ctx, machine, basis) {
		return 0, false
	}
	return after, true
}
