package machinehealthcheck

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// exemptAnnotation is whether starting Machines do not count against maxUnhealthy.
const exemptAnnotation = "machine-iac.io/exempt-starting-machines"

// checkMaxUnhealthy decides whether Machines may be remediated. When too many are unhealthy, the cause is not in the Machines.
type checkMaxUnhealthy struct {
	metrics *Metrics
}

// Reconcile implements pipeline.Step.
func (a *checkMaxUnhealthy) Reconcile(_ context.Context, s *scope) (bool, error) {
	count := countTargets(s.targets, exemptsStarting(s))
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
	}
	return true, nil
}

// counts are the numbers of targets.
type counts struct {
	expected, healthy int
	// exempt are the starting ones that do not count against maxUnhealthy.
	exempt int
}

// unhealthy returns how many targets count against maxUnhealthy.
func (t counts) unhealthy() int { return t.expected - t.healthy - t.exempt }

// describe returns the numbers by which remediation is restricted.
func (t counts) describe(most *intstr.IntOrString) string {
	text := fmt.Sprintf("(total: %d, unhealthy: %d, maxUnhealthy: %s)", t.expected, t.unhealthy(), maxUnhealthyText(most))
	if t.exempt > 0 {
		text += fmt.Sprintf("; starting and exempt: %d", t.exempt)
	}
	return text
}

// countTargets counts the targets.
func countTargets(targets []*target, exemptStarting bool) counts {
	count := counts{expected: len(targets)}
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

// exemptsStarting reads exemptAnnotation.
func exemptsStarting(s *scope) bool {
	switch value, found := s.check.Annotations[exemptAnnotation]; {
	case !found || value == "false":
		return false
	case value == "true":
		return true
	default:
		s.addEvent("annotation/"+exemptAnnotation, value, invalidAnnotation(s.check, exemptAnnotation, value,
			`until it is fixed, starting Machines count against maxUnhealthy; use "true" or "false"`))
		return false
	}
}

// maxUnhealthy returns how many of total Machines may be unhealthy. Percentages are rounded down.
func maxUnhealthy(value *intstr.IntOrString, total int) (int, error) {
	if value == nil {
		return total, nil
	}
	if value.Type == intstr.Int {
		return max(0, value.IntValue()), nil
	}
	number, percent, err := parseNumber(value.StrVal)
	if err != nil {
		return 0, fmt.Errorf("spec.maxUnhealthy %q is neither a number nor a percentage, so nothing is remediated; use a value such as 3 or 40%%",
			value.StrVal)
	}
	if percent {
		return min(max(0, number), 100) * total / 100, nil
	}
	return max(0, number), nil
}

// parseNumber reads "3" and "40%".
func parseNumber(text string) (number int, percent bool, err error) {
	digits, percent := strings.CutSuffix(text, "%")
	number, err = strconv.Atoi(digits)
	return number, percent, err
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
