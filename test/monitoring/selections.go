package monitoring

import (
	"fmt"
	"regexp"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// possible are label values that appear only after certain events.
var possible = map[string][]string{"reason": {string(failure.Credentials)}, "phase": {machinev1beta1.PhaseDeleting}}

// Problems returns a message for each query that reads a series, label or label value that does not exist and is not
// possible.
func Problems(selections []Selection, shown Families) []string {
	var problems []string
	for _, selection := range selections {
		labels := map[string]bool{}
		for _, label := range slices.Concat(targetLabels, selection.Added) {
			labels[label] = true
		}
		for _, series := range selection.Series {
			known, ok := shown[series.Name]
			if !ok {
				known, ok = foreign[series.Name]
			}
			if !ok {
				problems = append(problems, fmt.Sprintf("%s: there is no series %q",
					selection.Query.Where, series.Name))
				continue
			}
			for label := range known.Labels {
				labels[label] = true
			}
			for _, matcher := range series.Matchers {
				if problem := matcher.problem(known); problem != "" {
					problems = append(problems, fmt.Sprintf("%s: %s %s", selection.Query.Where, series.Name, problem))
				}
			}
		}
		for _, label := range selection.Labels {
			if !labels[label] {
				problems = append(problems, fmt.Sprintf("%s: no series that it reads has the label %q",
					selection.Query.Where, label))
			}
		}
	}
	return problems
}

// problem returns why no series can match, or "".
func (m Matcher) problem(known Family) string {
	if slices.Contains(targetLabels, m.Label) {
		return ""
	}
	if !known.Labels[m.Label] {
		return fmt.Sprintf("has no label %q", m.Label)
	}
	if known.Values == nil || m.Type == "!=" || m.Type == "!~" {
		return ""
	}
	matches := func(value string) bool { return value == m.Value }
	if m.Type == "=~" {
		pattern, err := regexp.Compile("^(?:" + m.Value + ")$")
		if err != nil {
			return err.Error()
		}
		matches = pattern.MatchString
	}
	if slices.ContainsFunc(known.Values[m.Label], matches) || slices.ContainsFunc(possible[m.Label], matches) {
		return ""
	}
	return fmt.Sprintf("has no series with %s%s%q; the label's values are %q", m.Label, m.Type,
		m.Value, known.Values[m.Label])
}
