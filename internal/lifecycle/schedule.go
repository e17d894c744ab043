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

// Schedule says when a Machine's instance is checked next.
type Schedule struct {
	interval time.Duration
	uid      string
	policy   v1alpha1.DriftPolicy
	hasIP    bool
	// created is when the Machine was first reported to have an instance, or zero.
	created time.Time
	look    Look
}

// NewSchedule returns the schedule of a Machine with the given decoded provider status and
// addresses. Drift checks are an interval apart, plus or minus a tenth.
func NewSchedule(machine *machinev1beta1.Machine, status *v1alpha1.TerraformMachineProviderStatus,
	addresses []corev1.NodeAddress, interval time.Duration) Schedule {
	s := Schedule{interval: interval, uid: string(machine.UID), policy: DriftOf(machine).Policy, hasIP: hasIP(addresses)}
	created := meta.FindStatusCondition(status.Conditions, string(machinev1beta1.MachineCreation))
	if created != nil && created.Status == "True" {
		s.created = created.LastTransitionTime.Time
	}
	return s
}

// Due returns the checks and repairs that are due now.
func (s Schedule) Due(f *Facts, now time.Time) Due {
	return Due{
		Check: s.checkDue(f, now), Repair: repairDue(f, s.interval, now),
		SecondLook: f.Record.SecondLook != nil && !now.Before(*f.Record.SecondLook),
		Look:       s.lookDue(f, now),
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

// Next returns when to reconcile the Machine again for a check, a look or a second look; zero for
// never.
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

// checkAfter returns how long after its last check an instance is checked again, and whether it is
// at all. An instance without an IP address is checked soon even if drift is ignored, because
// guests report addresses only after they boot.
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

// driftAfter returns the delay between two checks: the interval plus or minus a tenth. The
// Machine's UID spreads it, so that Machines created together are not checked together.
func driftAfter(interval time.Duration, uid string) time.Duration {
	return interval - interval/10 + spread(interval/5, uid)
}

// turns is the number of turns per interval at which checks fall due. The checks of one turn can be
// batched.
const turns = 60

// inTurn returns driftAfter rounded down to a turn, or up if that would be sooner than nine tenths
// of the interval.
func inTurn(last time.Time, interval time.Duration, uid string) time.Duration {
	turn := interval / turns
	if turn <= 0 {
		return driftAfter(interval, uid)
	}
	since := last.Truncate(time.Second) // as stored in a status
	at := since.Add(driftAfter(interval, uid)).Truncate(turn)
	if at.Before(since.Add(interval - interval/10)) {
		at = at.Add(turn)
	}
	return at.Sub(last)
}

// spread returns a fraction of a duration that depends on the Machine's UID.
func spread(whole time.Duration, uid string) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid)) // never fails
	const steps = 1000
	return whole * time.Duration(hash.Sum32()%steps) / steps
}

// firstAddressCheck is how long after its create an instance without an IP address is checked.
const firstAddressCheck = 20 * time.Second

// addressesAfter returns how long after a check an instance without an IP address is checked again.
// The delay grows with age, the instance's age at that check.
func addressesAfter(age time.Duration) time.Duration { return max(firstAddressCheck, age/2) }

// hasIP reports whether one of the addresses is an IP address.
func hasIP(addresses []corev1.NodeAddress) bool {
	return slices.ContainsFunc(addresses, func(address corev1.NodeAddress) bool {
		return address.Type == corev1.NodeInternalIP || address.Type == corev1.NodeExternalIP
	})
}
