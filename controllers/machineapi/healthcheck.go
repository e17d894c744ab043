package machineapi

import (
	"math"
	"strconv"
	"strings"
)

// Annotations of a MachineHealthCheck.
const (
	// ExemptAnnotation is whether starting Machines do not count against maxUnhealthy.
	ExemptAnnotation = "machine-iac.io/exempt-starting-machines"
	// InFlightAnnotation limits how many Machines are under remediation at a time.
	InFlightAnnotation = "machine-iac.io/max-remediations-in-flight"
)

// NoLimit allows remediation of all Machines at a time.
const NoLimit = math.MaxInt

// Quantity is a number, or a percentage of a total.
type Quantity struct {
	Number  int
	Percent bool
}

// ParseQuantity reads "3" and "40%".
func ParseQuantity(text string) (Quantity, error) {
	digits, percent := strings.CutSuffix(text, "%")
	if strings.HasPrefix(digits, "+") {
		return Quantity{}, strconv.ErrSyntax
	}
	number, err := strconv.Atoi(digits)
	return Quantity{Number: number, Percent: percent}, err
}

// Of returns the quantity of a total, between 0 and the total for percentages, which are rounded down.
func (q Quantity) Of(total int) int {
	if q.Percent {
		return min(max(0, q.Number), 100) * total / 100
	}
	return max(0, q.Number)
}

// ExemptsStarting reads ExemptAnnotation. An invalid value exempts nothing.
func ExemptsStarting(annotations map[string]string) (exempts, ok bool) {
	switch value, found := annotations[ExemptAnnotation]; {
	case !found || value == "false":
		return false, true
	default:
		return value == "true", value == "true"
	}
}

// RemediationLimit reads InFlightAnnotation: at least 1 of total Machines. An invalid value allows one, because a low
// limit was intended.
func RemediationLimit(annotations map[string]string, total int) (limit int, ok bool) {
	value, found := annotations[InFlightAnnotation]
	if !found {
		return NoLimit, true
	}
	quantity, err := ParseQuantity(value)
	if err != nil || quantity.Number < 1 || quantity.Percent && quantity.Number > 100 {
		return 1, false
	}
	return max(1, quantity.Of(total)), true
}
