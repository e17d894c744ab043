package iac

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// RecheckAfter implements actuators.Rechecker: the next check, or the next look for a second instance.
func (a *Actuator) RecheckAfter(machine *machinev1beta1.Machine) time.Duration {
	status := readProviderStatus(machine)
	var next time.Time
	if last := status.LastDriftCheckTime; last != nil {
		if after, wanted := a.checkAfter(machine, last.Time); wanted {
			next = last.Add(after)
		}
	}
	if second := status.SecondLookTime; second != nil && (next.IsZero() || second.Time.Before(next)) {
		next = second.Time
	}
	if next.IsZero() {
		return 0
	}
	return max(shortest, next.Sub(a.clock.Now()))
}

func (a *Actuator) checkDue(machine *machinev1beta1.Machine, f *facts, now time.Time) bool {
	if f.record.Check == nil {
		return f.drift.policy != v1alpha1.DriftIgnore
	}
	after, wanted := a.checkAfter(machine, f.record.Check.At)
	return wanted && !now.Before(f.record.Check.At.Add(after))
}

// checkAfter answers how long after its last check an instance is checked again, and whether it is at all. One that has told no address
// is looked at soon, also where drift is ignored: guests tell theirs once they run.
func (a *Actuator) checkAfter(machine *machinev1beta1.Machine, last time.Time) (after time.Duration, wanted bool) {
	interval := driftAfter(a.interval, string(machine.UID))
	soon := addressesAfter(last.Sub(madeAt(machine, last)))
	if !hasIP(machine.Status.Addresses) && soon < interval {
		return soon, true
	}
	return interval, driftOf(machine).policy != v1alpha1.DriftIgnore
}
