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

// RecheckAfter implements actuators.Rechecker: the time until the next check, the next look at the instance, or the second look, and
// soon where a claim of an address waits.
func (a *Actuator) RecheckAfter(machine *machinev1beta1.Machine) time.Duration {
	status := readProviderStatus(machine)
	after := a.recheckAfter(machine, &status)
	if claims.Waiting(status.Conditions) && (after == 0 || after > claims.Retry) {
		return claims.Retry
	}
	return after
}

func (a *Actuator) recheckAfter(machine *machinev1beta1.Machine, status *v1alpha1.TerraformMachineProviderStatus) time.Duration {
	next := lifecycle.NewSchedule(machine, status, machine.Status.Addresses, a.interval).WithLook(a.looks.Known(machine.UID)).Next(status)
	if next.IsZero() {
		return 0
	}
	return max(minRequeue, next.Sub(a.clock.Now()))
}

// maxUnchanged is for how long a Machine is said to be unchanged at most: a reconcile reads more than what is compared, such as the content of a stored module.
const maxUnchanged = time.Hour

// remember keeps the basis of the decision that nothing is to be done about a Machine, for Unchanged. After any other decision, and where a decision depends on
// more than the basis has, it drops what it kept.
func (a *Actuator) remember(o *observation, d lifecycle.Decision, outcome error) {
	check := o.facts.Record.Check
	if outcome != nil || o.asked != runs.Update || d.Action != lifecycle.ActionDone || o.facts.Run != nil || o.claims || check != nil && check.Result != record.DriftNone {
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
func (a *Actuator) Unchanged(ctx context.Context, machine *machinev1beta1.Machine) (after time.Duration, unchanged bool) {
	basis, until := a.bases.Kept(machine.UID)
	_, run := a.pool.Status(machine.UID)
	after = until.Sub(a.clock.Now())
	// Nothing is read where something is due: it falls due on each of many Machines at another time, and a list of all states serves those only that ask together.
	if basis == nil || after <= 0 || run || a.looks.Known(machine.UID).Missed() || !a.desired.Unchanged(ctx, machine, basis) {
		return 0, false
	}
	return after, true
}
