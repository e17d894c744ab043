package machinehealthcheck

import (
	"cmp"
	"context"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

const (
	// strategyAnnotation chooses how Machines are remediated.
	strategyAnnotation = "machine.openshift.io/remediation-strategy"
	// externalBaremetal is the value of strategyAnnotation for remediation by the controller of the
	// bare-metal hosts.
	externalBaremetal = "external-baremetal"
)

// action is what to do with a target.
type action int

const (
	nothing action = iota
	// skip: the Machine should be deleted, but no controller would replace it.
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

// planRemediation decides what to do with each target when Machines may be remediated.
type planRemediation struct{}

// Reconcile implements pipeline.Step.
func (*planRemediation) Reconcile(_ context.Context, s *scope) (bool, error) {
	if !s.allowed {
		return true, nil
	}
	limit := inFlightLimit(s)
	s.plan = planOf(s.check, s.targets, limit)
	for _, target := range s.plan.skip {
		s.addEvent("skipped/"+string(target.machine.UID), "", skippedNoController(s.check, target))
	}
	if s.plan.waiting > 0 {
		s.addEvent("deferred", deferral(s.plan.waiting, limit), remediationDeferred(s.check, s.plan.waiting, limit))
	}
	return true, nil
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
		if !target.inFlight() { // otherwise already counted
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

// inFlightLimit returns how many Machines may be under remediation at a time.
func inFlightLimit(s *scope) int {
	limit, ok := machineapi.RemediationLimit(s.check.Annotations, len(s.targets)+s.missing)
	if !ok {
		const key = machineapi.InFlightAnnotation
		value := s.check.Annotations[key]
		s.addEvent("annotation/"+key, value, invalidAnnotation(s.check, key, value,
			"until it is fixed, one remediation at a time is allowed; use a number from 1 or a percentage from 1% to 100%"+
				" (the annotation "+pausedAnnotation+" stops remediation altogether)"))
	}
	return limit
}
