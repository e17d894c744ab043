package authority

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAuthority(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
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
			set := &machinev1beta1.MachineSet{}
			set.Spec.AuthoritativeAPI, set.Status.AuthoritativeAPI = tc.spec, tc.status
			machine := &machinev1beta1.Machine{}
			machine.Spec.AuthoritativeAPI, machine.Status.AuthoritativeAPI = tc.spec, tc.status
			for kind, subject := range map[string]Subject{"MachineSet": OfMachineSet(set), "Machine": OfMachine(machine)} {
				if ours := subject.Ours(); ours != tc.wantGoOn {
					t.Errorf("%s: ours is %v, want %v", kind, ours, tc.wantGoOn)
				}
				if goOn := subject.Settle(t.Context(), now); goOn != tc.wantGoOn {
					t.Errorf("%s: got %v, want %v", kind, goOn, tc.wantGoOn)
				}
			}
			for kind, got := range map[string]machinev1beta1.MachineAuthority{
				"MachineSet": set.Status.AuthoritativeAPI, "Machine": machine.Status.AuthoritativeAPI,
			} {
				if got != tc.wantStatus {
					t.Errorf("%s: got status %q, want %q", kind, got, tc.wantStatus)
				}
			}
			if diff := cmp.Diff(tc.wantConditions, set.Status.Conditions); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.wantConditions, machine.Status.Conditions); diff != "" {
				t.Error(diff)
			}
		})
	}
}
