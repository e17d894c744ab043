package machinehealthcheck

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// exemptAnnotation tells whether starting Machines are left out when maxUnhealthy is compared.
const exemptAnnotation = "machine-iac.io/exempt-starting-machines"

// allowance decides whether Machines may be remediated. When too many are unhealthy, something else is wrong than Machines.
type allowance struct {
	metrics *Metrics
}

// Reconcile implements step.
func (a *allowance) Reconcile(_ context.Context, s *scope) (bool, error) {
	count := tallyOf(s.targets, exemptsStarting(s))
	most, err := maxUnhealthy(s.check.Spec.MaxUnhealthy, count.expected)
	s.allowed = err == nil && count.unhealthy() <= most
	a.metrics.shortCircuited(s.check, !s.allowed)
	switch {
	case err != nil:
		showBlocked(s, count, invalidMaxUnhealthyReason, err.Error())
	case s.allowed:
		showAllowed(s, count, most)
	default:
		showBlocked(s, count, tooManyUnhealthyReason, count.describe(s.check.Spec.MaxUnhealthy))
	}
	return true, nil
}

// tally is how many targets there are, and of what kind.
type tally struct {
	expected, healthy int
	// exempt are the starting ones that do not use up maxUnhealthy.
	exempt int
}

// unhealthy is how many targets use up maxUnhealthy.
func (t tally) unhealthy() int { return t.expected - t.healthy - t.exempt }

// describe puts into words why remediation is restricted.
func (t tally) describe(most *intstr.IntOrString) string {
	text := fmt.Sprintf("more Machines are unhealthy than maxUnhealthy allows (total: %d, unhealthy: %d, maxUnhealthy: %s",
		t.expected, t.unhealthy(), maxUnhealthyText(most))
	if t.exempt > 0 {
		text += fmt.Sprintf(", starting and exempt: %d", t.exempt)
	}
	return text + ")"
}

// tallyOf counts the targets.
func tallyOf(targets []*target, exemptStarting bool) tally {
	count := tally{expected: len(targets)}
	for _, target := range targets {
		if target.healthy() {
			count.healthy++
		}
		if exemptStarting && target.verdict.starting && !target.deleting && !target.annotated {
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
		s.say("annotation/"+exemptAnnotation, value, invalidAnnotation(s.check, exemptAnnotation, value,
			`until it is fixed, starting Machines count against maxUnhealthy; use "true" or "false"`))
		return false
	}
}

// maxUnhealthy answers how many of total Machines may be unhealthy. Percentages are rounded down.
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

// remediationsAllowed is how many more Machines may turn unhealthy before remediation stops.
func remediationsAllowed(most, unhealthy int) int32 {
	return int32(min(max(0, most-unhealthy), math.MaxInt32))
}
