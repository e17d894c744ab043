package machinehealthcheck

import (
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// missingRecheck is how often to check whether MachineSets have created the Machines that
// remediation waits for.
const missingRecheck = time.Minute

// checkMaxUnhealthy decides whether Machines may be remediated. When too many are unhealthy, the
// cause is not in the Machines.
type checkMaxUnhealthy struct {
	metrics *Metrics
}

// Reconcile implements pipeline.Step.
func (a *checkMaxUnhealthy) Reconcile(_ context.Context, s *scope) (bool, error) {
	count := countTargets(s.targets, s.missing, exemptsStarting(s))
	most, err := maxUnhealthy(s.check.Spec.MaxUnhealthy, count.expected)
	s.allowed = err == nil && count.unhealthy() <= most
	a.metrics.shortCircuited(s.check, !s.allowed)
	switch {
	case err != nil:
		setInvalid(s, count, invalidMaxUnhealthyReason, err.Error())
	case s.allowed:
		setAllowed(s, count, most)
	default:
		setTooMany(s, count)
		if s.missing > 0 { // MachineSets are not watched
			s.RequeueAfter(missingRecheck)
		}
	}
	return true, nil
}

// counts are the numbers of targets, and of Machines that are missing.
type counts struct {
	expected, healthy, missing int
	// exempt are the starting ones that do not count against maxUnhealthy.
	exempt int
}

// unhealthy returns how many targets count against maxUnhealthy.
func (t counts) unhealthy() int { return t.expected - t.healthy - t.exempt }

// describe returns the numbers by which remediation is restricted.
func (t counts) describe(most *intstr.IntOrString) string {
	text := fmt.Sprintf("(total: %d, unhealthy: %d, maxUnhealthy: %s)", t.expected, t.unhealthy(), maxUnhealthyText(most))
	if t.missing > 0 {
		text += fmt.Sprintf("; not created by their MachineSet yet: %d", t.missing)
	}
	if t.exempt > 0 {
		text += fmt.Sprintf("; starting and exempt: %d", t.exempt)
	}
	return text
}

// countTargets counts the targets. Missing Machines are expected, and are not healthy.
func countTargets(targets []*target, missing int, exemptStarting bool) counts {
	count := counts{expected: len(targets) + missing, missing: missing}
	for _, target := range targets {
		if target.healthy() {
			count.healthy++
		}
		if exemptStarting && target.health.starting && !target.deleting && !target.annotated {
			count.exempt++
		}
	}
	return count
}

// exemptsStarting reports whether starting Machines do not count against maxUnhealthy.
func exemptsStarting(s *scope) bool {
	exempts, ok := machineapi.ExemptsStarting(s.check.Annotations)
	if !ok {
		const key = machineapi.ExemptAnnotation
		value := s.check.Annotations[key]
		s.addEvent("annotation/"+key, value, invalidAnnotation(s.check, key, value,
			`until it is fixed, starting Machines count against maxUnhealthy; use "true" or "false"`))
	}
	return exempts
}

// maxUnhealthy returns how many of total Machines may be unhealthy. Percentages are rounded down.
func maxUnhealthy(value *intstr.IntOrString, total int) (int, error) {
	if value == nil {
		return total, nil
	}
	if value.Type == intstr.Int {
		return max(0, value.IntValue()), nil
	}
	quantity, err := machineapi.ParseQuantity(value.StrVal)
	if err != nil {
		return 0, fmt.Errorf("spec.maxUnhealthy %q is neither a number nor a percentage, so nothing is remediated; use a "+
			"value such as 3 or 40%%",
			value.StrVal)
	}
	return quantity.Of(total), nil
}

func maxUnhealthyText(value *intstr.IntOrString) string {
	if value == nil {
		return "100%"
	}
	return value.String()
}

// remediationsAllowed returns how many more Machines may become unhealthy before remediation stops.
func remediationsAllowed(most, unhealthy int) int32 {
	return int32(min(max(0, most-unhealthy), math.MaxInt32))
}
