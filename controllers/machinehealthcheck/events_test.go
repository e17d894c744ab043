package machinehealthcheck

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// TestTextsBeginAsThoseOfTheMachineAPI has the texts of machine-api-operator word by word: scripts
// and alerts compare them.
func TestTextsBeginAsThoseOfTheMachineAPI(t *testing.T) {
	check := builder.MachineHealthCheck(builder.WithMaxUnhealthy("40%"))
	check.Namespace, check.Name = "ns", "check"
	with := func(node string) *target {
		machine := builder.Machine()
		machine.Name = "m"
		if node != "" {
			machine.Status.NodeRef = &corev1.ObjectReference{Name: node}
		}
		return &target{machine: machine, health: healthResult{why: "it is"}}
	}
	no := errors.New("no")
	type shown struct{ Kind, Reason, Action, Note string }
	tcs := map[string]struct {
		event events.Event
		want  shown
	}{
		"unhealthy, not due": {
			detectedUnhealthy(check, with("n")),
			shown{
				"Normal", "DetectedUnhealthy", "HealthCheck",
				"Machine ns/check/m/n has unhealthy node n (it is); it is remediated after that time unless it recovers",
			},
		},
		"deleted": {
			machineDeleted(check, with("n")),
			shown{
				"Normal", "MachineDeleted", "Remediate",
				"Machine ns/check/m/n has been remediated by requesting to delete Machine object (it is)",
			},
		},
		"deletion refused": {
			machineDeletionFailed(check, with("n"), no),
			shown{
				"Warning", "MachineDeletionFailed", "Remediate",
				"Machine ns/check/m/n remediation failed: unable to delete Machine object: no (it is)",
			},
		},
		"without a controller, and without a Node": {
			skippedNoController(check, with("")),
			shown{"Normal", "SkippedNoController", "Remediate", "Machine ns/check/m/ has no controller owner, skipping remediation (it is)"},
		},
		"annotated": {
			externalAnnotationAdded(check, with("n")),
			shown{
				"Normal", "ExternalAnnotationAdded", "Remediate",
				"Requesting external remediation of node associated with machine ns/check/m/n (it is)",
			},
		},
		"not annotated": {
			externalAnnotationFailed(check, with("n"), no),
			shown{
				"Warning", "ExternalAnnotationFailed", "Remediate",
				"Requesting external remediation of node associated with machine ns/check/m/n failed: no (it is)",
			},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, shown{tc.event.Type, tc.event.Reason, tc.event.Action, tc.event.Note}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTooManyUnhealthyIsReportedInTheWordsOfTheMachineAPI(t *testing.T) {
	unhealthy := &target{machine: builder.Machine(), health: healthResult{remediate: true}}
	healthy := &target{machine: builder.Machine(), node: &corev1.Node{}}
	s := &scope{
		check: builder.MachineHealthCheck(builder.WithMaxUnhealthy("40%")), now: now, targets: []*target{healthy, unhealthy, unhealthy},
	}
	if _, err := (&checkMaxUnhealthy{metrics: NewMetrics()}).Reconcile(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	condition := machineapi.FindCondition(s.check.Status.Conditions, machinev1beta1.RemediationAllowedCondition)
	want := "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: 3, unhealthy: 2, maxUnhealthy: 40%)"
	if condition == nil || condition.Message != want {
		t.Errorf("the condition is %+v, want the message %q", condition, want)
	}
	want = "Remediation restricted due to exceeded number of unhealthy machines (total: 3, unhealthy: 2, maxUnhealthy: 40%)"
	if len(s.events) != 1 || s.events[0].event.Note != want || s.events[0].event.Action != "Remediate" {
		t.Errorf("the events are %+v, want one with the note %q", s.events, want)
	}
}
