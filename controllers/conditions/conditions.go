// Package conditions sets conditions of the Machine API, which has a condition type of its own.
package conditions

import (
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// With answers conditions with the wanted one in place, sorted by type. The time of transition, in whole seconds, moves when
// anything else that a reader sees has changed. The slice given is not changed.
func With(conditions []machinev1beta1.Condition, wanted machinev1beta1.Condition, now time.Time) []machinev1beta1.Condition {
	wanted.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
	sameType := func(c machinev1beta1.Condition) bool { return c.Type == wanted.Type }
	if at := slices.IndexFunc(conditions, sameType); at >= 0 {
		asBefore := wanted
		asBefore.LastTransitionTime = conditions[at].LastTransitionTime
		if conditions[at] == asBefore {
			return conditions
		}
	}
	out := append(slices.DeleteFunc(slices.Clone(conditions), sameType), wanted)
	slices.SortFunc(out, func(x, y machinev1beta1.Condition) int { return strings.Compare(string(x.Type), string(y.Type)) })
	return out
}

// Find answers the condition of a type, nil when there is none.
func Find(conditions []machinev1beta1.Condition, kind machinev1beta1.ConditionType) *machinev1beta1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
