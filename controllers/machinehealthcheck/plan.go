package machinehealthcheck

import (
	"cmp"
	"math"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// inFlightAnnotation limits how many Machines are under remediation at a time.
	inFlightAnnotation = "machine-iac.io/max-remediations-in-flight"
	// strategyAnnotation chooses how Machines are remediated.
	strategyAnnotation = "machine.openshift.io/remediation-strategy"
	// externalBaremetal is the value of strategyAnnotation for remediation by the controller of the bare-metal hosts.
	externalBaremetal = "external-baremetal"
)

// noLimit allows remediation of all targets at a time.
const noLimit = math.MaxInt

// action is what to do with a target.
type action int

const (
	nothing action = iota
	// skip: it should be deleted, but no controller would replace it.
	skip
	destroy
	annotate
	request
)

// actionFor returns what to do with a target, regardless of the others.
func actionFor(check *machinev1beta1.MachineHealthCheck, t *target) action {
	switch {
	case !t.health.remediate || t.deleting:
		return nothing
	case check.Spec.RemediationTemplate != nil:
		if t.requested {
			return nothing
		}
		return request
	case check.Annotations[strategyAnnotation] == externalBaremetal && !failed(t.machine):
		if t.annotated {
			return nothing
		}
		return annotate
	case metav1.GetControllerOfNoCopy(t.machine) == nil:
		return skip
	default:
		return destroy
	}
}

// remediationPlan is what a reconcile does.
type remediationPlan struct {
	destroy, annotate, request, skip []*target
	// waiting is how many targets must wait for the remediation of others.
	waiting int
}

// planOf returns what to do, longest unhealthy first, with at most limit targets under remediation.
func planOf(check *machinev1beta1.MachineHealthCheck, targets []*target, limit int) remediationPlan {
	var out remediationPlan
	inFlight := 0
	for _, target := range targets {
		if target.inFlight() {
			inFlight++
		}
	}
	for _, target := range oldestFirst(targets) {
		what := actionFor(check, target)
		if what == skip {
			out.skip = append(out.skip, target)
		}
		if what == nothing || what == skip {
			continue
		}
		if !target.inFlight() { // otherwise it is counted already
			if inFlight >= limit {
				out.waiting++
				continue
			}
			inFlight++
		}
		switch what {
		case destroy:
			out.destroy = append(out.destroy, target)
		case annotate:
			out.annotate = append(out.annotate, target)
		default:
			out.request = append(out.request, target)
		}
	}
	return out
}

// oldestFirst returns the targets by when they became unhealthy, then by name.
func oldestFirst(targets []*target) []*target {
	sorted := slices.Clone(targets)
	slices.SortFunc(sorted, func(x, y *target) int {
		return cmp.Or(x.health.since.Compare(y.health.since), cmp.Compare(x.machine.Name, y.machine.Name))
	})
	return sorted
}

// inFlightLimit reads inFlightAnnotation.
func inFlightLimit(s *scope) int {
	value, found := s.check.Annotations[inFlightAnnotation]
	if !found {
		return noLimit
	}
	limit, ok := parseLimit(value, len(s.targets))
	if !ok {
		s.addEvent("annotation/"+inFlightAnnotation, value, invalidAnnotation(s.check, inFlightAnnotation, value,
			"until it is fixed, one remediation at a time is allowed; use a number from 1 or a percentage from 1% to 100%"+
				" (the annotation "+pausedAnnotation+" stops remediation altogether)"))
	}
	return limit
}

// parseLimit reads a number or a percentage of total, rounded down but at least 1. An invalid value allows one: a low
// limit was intended.
func parseLimit(value string, total int) (limit int, ok bool) {
	number, percent, err := parseNumber(value)
	if err != nil || number < 1 || percent && number > 100 {
		return 1, false
	}
	if percent {
		return max(1, number*total/100), true
	}
	return number, true
}
