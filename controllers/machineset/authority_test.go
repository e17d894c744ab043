package machineset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestAuthority(t *testing.T) {
	at := metav1.NewTime(now)
	no := machinev1beta1.Condition{
		Type: "Paused", Status: corev1.ConditionFalse, Severity: "Info", Reason: "AuthoritativeAPIMachineAPI",
		Message: "The AuthoritativeAPI status is set to 'MachineAPI'", LastTransitionTime: at,
	}
	yes := func(api string) machinev1beta1.Condition {
		return machinev1beta1.Condition{
			Type: "Paused", Status: corev1.ConditionTrue, Reason: "AuthoritativeAPINotMachineAPI",
			Message: "The AuthoritativeAPI status is set to '" + api + "'", LastTransitionTime: at,
		}
	}
	tcs := map[string]struct {
		spec, status   machinev1beta1.MachineAuthority
		wantGoOn       bool
		wantStatus     machinev1beta1.MachineAuthority
		wantConditions []machinev1beta1.Condition
	}{
		"without the field all is ours":              {wantGoOn: true},
		"the wish is taken over first":               {spec: "MachineAPI", wantStatus: "MachineAPI"},
		"a wish for the other API is taken over too": {spec: "ClusterAPI", wantStatus: "ClusterAPI"},
		"ours":                            {"MachineAPI", "MachineAPI", true, "MachineAPI", []machinev1beta1.Condition{no}},
		"the status counts, not the wish": {"ClusterAPI", "MachineAPI", true, "MachineAPI", []machinev1beta1.Condition{no}},
		"the other API's":                 {"ClusterAPI", "ClusterAPI", false, "ClusterAPI", []machinev1beta1.Condition{yes("ClusterAPI")}},
		"between the two":                 {"MachineAPI", "Migrating", false, "Migrating", []machinev1beta1.Condition{yes("Migrating")}},
		"something unknown is left alone, unmarked":   {"MachineAPI", "Other", false, "Other", nil},
		"something unknown needs no wish to be there": {"", "Other", false, "Other", nil},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			set := builder.MachineSet(func(s *machinev1beta1.MachineSet) {
				s.Spec.AuthoritativeAPI, s.Status.AuthoritativeAPI = tc.spec, tc.status
			})
			goOn, err := (&authority{clock: clocktesting.NewFakePassiveClock(now)}).Reconcile(t.Context(), &scope{set: set})
			if err != nil || goOn != tc.wantGoOn {
				t.Errorf("got %v, %v; want %v", goOn, err, tc.wantGoOn)
			}
			if set.Status.AuthoritativeAPI != tc.wantStatus {
				t.Errorf("got status %q, want %q", set.Status.AuthoritativeAPI, tc.wantStatus)
			}
			if diff := cmp.Diff(tc.wantConditions, set.Status.Conditions); diff != "" {
				t.Error(diff)
			}
		})
	}
}
