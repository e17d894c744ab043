package machinehealthcheck

import (
	"fmt"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// withProviderStatus sets fields of the operator's provider status, given as JSON.
func withProviderStatus(fields string) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Status.ProviderStatus = &runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"kind": "TerraformMachineProviderStatus", %s}`, fields)}
	}
}

func stamp(lasting time.Duration) string { return ago(lasting).Format(time.RFC3339) }

func createFailed(lasting time.Duration) string {
	return fmt.Sprintf(`"conditions": [{"type": "MachineCreation", "status": "False", "lastTransitionTime": %q}]`, stamp(lasting))
}

func createRun(startedAgo time.Duration) string {
	if startedAgo == 0 {
		return fmt.Sprintf(`"run": {"operation": "Create", "queuedAt": %q}`, stamp(23*time.Hour))
	}
	return fmt.Sprintf(`"run": {"operation": "Create", "queuedAt": %q, "startedAt": %q}`, stamp(23*time.Hour), stamp(startedAgo))
}

// TestTheStartupTimeoutBeginsWithTheCreate has Machines that are a day old and were written a moment
// ago.
func TestTheStartupTimeoutBeginsWithTheCreate(t *testing.T) {
	witness := builder.WithAnnotations(map[string]string{witnessAnnotation: "{}"})
	none := func(*machinev1beta1.Machine) {}
	for name, tc := range map[string]struct {
		status string
		mod    func(*machinev1beta1.Machine)
		want   time.Duration // how long the start has lasted; zero while it has not begun
	}{
		"queued":                          {createRun(0), none, 0},
		"queued again by another manager": {createRun(0), witness, 0},
		"not even queued, since the queue is full":    {`"module": ""`, none, 0},
		"its Job waits in a queue":                    {strings.Replace(createRun(time.Hour), "}", `, "waitsFor": "quota"}`, 1), witness, 0},
		"running":                                     {createRun(4 * time.Minute), witness, 4 * time.Minute},
		"failed, and queued again":                    {createRun(0) + "," + createFailed(4*time.Minute), witness, 4 * time.Minute},
		"failed, and running again":                   {createRun(time.Minute) + "," + createFailed(4*time.Minute), witness, 4 * time.Minute},
		"failed before a run":                         {createFailed(4 * time.Minute), none, 4 * time.Minute},
		"ended without a reported failure":            {`"module": ""`, witness, 10 * time.Second},
		"of another actuator, which reports no runs":  {`"kind": "AWSMachineProviderStatus"`, none, 24 * time.Hour},
		"of the platform's type, not even queued":     {`"kind": "AWSMachineProviderStatus", "reportedBy": "machine-iac.io"`, none, 0},
		"with an instance, which another run changes": {createRun(0), instanceSaid("True", 4*time.Minute), 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			mods := []func(*machinev1beta1.Machine){builder.Stored(ago(24 * time.Hour)), builder.LastUpdatedAt(now),
				withProviderStatus(tc.status), tc.mod}
			if !strings.Contains(name, "with an instance") {
				mods = append(mods, instanceSaid("False", 10*time.Second))
			}
			machine := builder.Machine(mods...)
			got := startOf(machine)
			if tc.want == 0 && !got.IsZero() || tc.want != 0 && !got.Equal(ago(tc.want)) {
				t.Errorf("got a start at %s, want %s ago", got, tc.want)
			}
			health := healthOf(&builder.MachineHealthCheck().Spec, machine, nil, now)
			if want := tc.want > 10*time.Minute; health.remediate != want {
				t.Errorf("got remediation %t, want %t", health.remediate, want)
			}
		})
	}
}

// TestANodeWhoseClockIsAheadIsRemediatedInTime has a Node that was Ready until a minute ago and
// writes times of the next hour.
func TestANodeWhoseClockIsAheadIsRemediatedInTime(t *testing.T) {
	node := builder.Node(builder.WithReady(corev1.ConditionFalse, ago(time.Minute).Add(time.Hour)))
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now.Add(time.Hour))
	spec := &builder.MachineHealthCheck().Spec
	got := healthOf(spec, builder.Machine(builder.WithNodeRef(node)), node, now)
	if got.remediate || got.recheck != 4*time.Minute+time.Second {
		t.Errorf("got remediation %t and the next check in %s, want one in 4m1s", got.remediate, got.recheck)
	}
	if !strings.Contains(got.why, "the Node's clock is at least 1h0m0s ahead") {
		t.Errorf("got the reason %q, which does not name the skew", got.why)
	}
	later := now.Add(5 * time.Minute)
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(later.Add(time.Hour))
	if got := healthOf(spec, builder.Machine(builder.WithNodeRef(node)), node, later); !got.remediate {
		t.Errorf("got no remediation after six minutes: %s", got.why)
	}
	node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(ago(time.Minute)) // before its clock jumped
	if got := healthOf(spec, builder.Machine(builder.WithNodeRef(node)), node, now); got.remediate {
		t.Errorf("got remediation of a Node that has been NotReady for a minute: %s", got.why)
	}
	node.Status.Conditions[0].Status = corev1.ConditionUnknown // written by the control plane
	node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now)
	if got := healthOf(spec, builder.Machine(builder.WithNodeRef(node)), node, now); got.remediate {
		t.Errorf("got remediation of a Node that has been Unknown for a moment: %s", got.why)
	}
}
