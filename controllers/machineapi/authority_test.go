package machineapi

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
		wantProceed    bool
		wantStatus     machinev1beta1.MachineAuthority
		wantConditions []machinev1beta1.Condition
	}{
		"without the field the Machine API is authoritative": {wantProceed: true},
		"the spec is copied to the status first":             {spec: "MachineAPI", wantStatus: "MachineAPI"},
		"a spec with the other API is copied too":            {spec: "ClusterAPI", wantStatus: "ClusterAPI"},
		"the Machine API's":                                  {"MachineAPI", "MachineAPI", true, "MachineAPI", []machinev1beta1.Condition{no}},
		"the status counts, not the spec":                    {"ClusterAPI", "MachineAPI", true, "MachineAPI", []machinev1beta1.Condition{no}},
		"the other API's":                                    {"ClusterAPI", "ClusterAPI", false, "ClusterAPI", []machinev1beta1.Condition{yes("ClusterAPI")}},
		"between the two":                                    {"MachineAPI", "Migrating", false, "Migrating", []machinev1beta1.Condition{yes("Migrating")}},
		"an unknown API is ignored, without a condition":     {"MachineAPI", "Other", false, "Other", nil},
		"an unknown API is ignored without a spec too":       {"", "Other", false, "Other", nil},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			set := &machinev1beta1.MachineSet{}
			set.Spec.AuthoritativeAPI, set.Status.AuthoritativeAPI = tc.spec, tc.status
			machine := &machinev1beta1.Machine{}
			machine.Spec.AuthoritativeAPI, machine.Status.AuthoritativeAPI = tc.spec, tc.status
			for kind, authority := range map[string]Authority{"MachineSet": AuthorityOfMachineSet(set), "Machine": AuthorityOfMachine(machine)} {
				if is := authority.IsMachineAPI(); is != tc.wantProceed {
					t.Errorf("%s: IsMachineAPI is %v, want %v", kind, is, tc.wantProceed)
				}
				if proceed := authority.Sync(t.Context(), now); proceed != tc.wantProceed {
					t.Errorf("%s: Sync returned %v, want %v", kind, proceed, tc.wantProceed)
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
