package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

func TestHookCondition(t *testing.T) {
	hook := func(name, owner string) machinev1beta1.LifecycleHook {
		return machinev1beta1.LifecycleHook{Name: name, Owner: owner}
	}
	held := machinev1beta1.Condition{
		Type: "Terminable", Status: corev1.ConditionFalse, Severity: machinev1beta1.ConditionSeverityWarning, Reason: "HookPresent",
	}
	withMessage := func(message string) machinev1beta1.Condition {
		condition := held
		condition.Message = message
		return condition
	}
	tcs := map[string]struct {
		hooks []machinev1beta1.LifecycleHook
		want  machinev1beta1.Condition
	}{
		"nobody holds it":  {nil, machinev1beta1.Condition{Type: "Terminable", Status: corev1.ConditionTrue}},
		"an empty list":    {[]machinev1beta1.LifecycleHook{}, machinev1beta1.Condition{Type: "Terminable", Status: corev1.ConditionTrue}},
		"one hook":         {[]machinev1beta1.LifecycleHook{hook("Save", "backup")}, withMessage("Terminate operation currently blocked by: [{Name:Save Owner:backup}]")},
		"all hooks listed": {[]machinev1beta1.LifecycleHook{hook("A", "x"), hook("B", "y")}, withMessage("Terminate operation currently blocked by: [{Name:A Owner:x} {Name:B Owner:y}]")},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hookCondition(machinev1beta1.MachineTerminable, "Terminate", tc.hooks)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
