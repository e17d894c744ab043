package lifecycle

import (
	"hash/fnv"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Schedule says when the instance of a Machine is checked again.
type Schedule struct {
	interval time.Duration
	uid      string
	policy   v1alpha1.DriftPolicy
	hasIP    bool
	// created is when the Machine was first reported to have an instance; zero when it was not.
	created time.Time
	look    Look
}

// NewSchedule returns the schedule of a Machine by its decoded provider status and its addresses. Drift checks are an interval apart, a tenth
// more or less.
func NewSchedule(machine *machinev1beta1.Machine, status *v1alpha1.TerraformMachineProviderStatus, addresses []corev1.NodeAddress, interval time.Duration) Schedule {
	s := Schedule{interval: interval, uid: string(machine.UID), policy: DriftOf(machine).Policy, hasIP: hasIP(addresses)}
	created := meta.FindStatusCondition(status.Conditions, string(machinev1beta1.MachineCreation))
	if created != nil && created.Status == "True" {
		s.created = created.LastTransitionTime.Time
	}
	return s
}

// Due returns what is due for an instance now.
func (s Schedule) Due(f *Facts, now time.Time) Due {
	return Due{
		Check: s.checkDue(f, now), Repair: repairDue(f, s.interval, now), SecondLook: f.Record.SecondLook != nil && !now.Before(*f.Record.SecondLook),
		Look: s.lookDue(f, now),
	}
}

func (s Schedule) checkDue(f *Facts, now time.Time) bool {
	if f.Record.Check == nil {
		return s.policy != v1alpha1.DriftIgnore || f.CheckRequest != ""
	}
	if f.CheckRequest != "" && f.CheckRequest != f.Record.Check.Request {
		return true
	}
	if s.look.Gone.After(f.Record.Check.At) {
		return true
	}
	after, wanted := s.checkAfter(f.Record.Check.At)
	return wanted && !now.Before(f.Record.Check.At.Add(after))
}

// Next returns when the Machine of a provider status should be reconciled again, for a check or for the second look; zero for never.
func (s Schedule) Next(status *v1alpha1.TerraformMachineProviderStatus) time.Time {
	var next time.Time
	if last := status.LastDriftCheckTime; last != nil {
		if after, wanted := s.checkAfter(last.Time); wanted {
			next = last.Add(after)
		}
	}
	if look := s.nextLook(status); !look.IsZero() && (next.IsZero() || look.Before(next)) {
		next = look
	}
	if second := status.SecondLookTime; second != nil && (next.IsZero() || second.Time.Before(next)) {
		next = second.Time
	}
	return next
}

// checkAfter returns how long after its last check an instance is checked again, and whether it is at all. One without an IP address is
// checked soon, also where drift is ignored: guests report theirs once they run.
func (s Schedule) checkAfter(last time.Time) (after time.Duration, wanted bool) {
	interval := inTurn(last, s.interval, s.uid)
	var age time.Duration
	if !s.created.IsZero() {
		age = last.Sub(s.created)
	}
	if soon := addressesAfter(age); !s.hasIP && soon < interval {
		return soon, true
	}
	return interval, s.policy != v1alpha1.DriftIgnore
}

// driftAfter returns how long after a check the next one is due: the interval, a tenth more or less, spread by the Machine's UID
// so that Machines made together are not checked together.
func driftAfter(interval time.Duration, uid string) time.Duration {
	return interval - interval/10 + spread(interval/5, uid)
}

// turns is how many times in an interval regular checks fall due: those of one turn can be made together.
const turns = 60

// inTurn returns how long after a check the next one is due, which is the turn before driftAfter, or after it where that is sooner than a tenth less than the interval.
func inTurn(last time.Time, interval time.Duration, uid string) time.Duration {
	turn := interval / turns
	if turn <= 0 {
		return driftAfter(interval, uid)
	}
	since := last.Truncate(time.Second) // as a status has it
	at := since.Add(driftAfter(interval, uid)).Truncate(turn)
	if at.Before(since.Add(interval - interval/10)) {
		at = at.Add(turn)
	}
	return at.Sub(last)
}

// spread returns a part of a time, by the Machine's UID.
func spread(whole time.Duration, uid string) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid)) // a hash takes everything
	const steps = 1000
	return whole * time.Duration(hash.Sum32()%steps) / steps
}

// firstAddressCheck is how long after its create an instance without an IP address is checked.
const firstAddressCheck = 20 * time.Second

// addressesAfter returns how long after a check an instance without an IP address is checked again. age is how old the instance was at that
// check: the pauses grow with it.
func addressesAfter(age time.Duration) time.Duration { return max(firstAddressCheck, age/2) }

// hasIP reports whether one of the addresses is an IP address.
func hasIP(addresses []corev1.NodeAddress) bool {
	return slices.ContainsFunc(addresses, func(address corev1.NodeAddress) bool {
		return address.Type == corev1.NodeInternalIP || address.Type == corev1.NodeExternalIP
	})
}
