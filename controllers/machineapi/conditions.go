package machineapi

import (
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExcludeDrainAnnotation exempts a Machine from being drained, whatever its value.
const ExcludeDrainAnnotation = "machine.openshift.io/exclude-node-draining"

// WithCondition returns conditions with the wanted one set, sorted by type. The transition time, in
// whole seconds, moves when status, severity, reason or message change. The slice given is not
// changed.
func WithCondition(conditions []machinev1beta1.Condition, wanted machinev1beta1.Condition,
	now time.Time) []machinev1beta1.Condition {
	wanted.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
	if current := FindCondition(conditions, wanted.Type); current != nil {
		asBefore := wanted
		asBefore.LastTransitionTime = current.LastTransitionTime
		if *current == asBefore {
			return conditions
		}
	}
	out := append(WithoutCondition(conditions, wanted.Type), wanted)
	slices.SortFunc(out,
		func(x, y machinev1beta1.Condition) int { return strings.Compare(string(x.Type), string(y.Type)) })
	return out
}

// WithoutCondition returns conditions but that of a type. The slice given is not changed.
func WithoutCondition(conditions []machinev1beta1.Condition,
	kind machinev1beta1.ConditionType) []machinev1beta1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c machinev1beta1.Condition) bool { return c.Type == kind })
}

// FindCondition returns the condition of a type, nil when there is none.
func FindCondition(conditions []machinev1beta1.Condition, kind machinev1beta1.ConditionType) *machinev1beta1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// Drained reports whether the drain of the Machine's Node has ended: the condition Drained is True.
func Drained(machine *machinev1beta1.Machine) bool {
	found := FindCondition(machine.Status.Conditions, machinev1beta1.MachineDrained)
	return found != nil && found.Status == corev1.ConditionTrue
}

// Phase returns the Machine's phase, "" when it has none yet.
func Phase(machine *machinev1beta1.Machine) string {
	if machine.Status.Phase == nil {
		return ""
	}
	return *machine.Status.Phase
}
