package rollout

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

func TestStatusIsThatOfADeployment(t *testing.T) {
	exceeded := []metav1.Condition{{Type: v1beta1.ConditionProgressing, Status: metav1.ConditionFalse,
		Reason: v1beta1.ReasonProgressDeadlineExceeded, Message: "Machine workers-x: no space"}}
	for name, tc := range map[string]struct {
		revision int64
		status   v1beta1.MachineDeploymentStatus
		want     string
		wantDone bool
		wantErr  string
	}{
		"not seen": {want: "Waiting for machinedeployment spec update to be observed...\n"},
		"some are old": {
			status: v1beta1.MachineDeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 1, AvailableReplicas: 3},
			want:   `Waiting for machinedeployment "workers" rollout to finish: 1 out of 3 new replicas have been updated...` + "\n",
		},
		"old ones are left": {
			status: v1beta1.MachineDeploymentStatus{ObservedGeneration: 2, Replicas: 5, UpdatedReplicas: 3, AvailableReplicas: 5},
			want:   `Waiting for machinedeployment "workers" rollout to finish: 2 old replicas are pending termination...` + "\n",
		},
		"not all available": {
			status: v1beta1.MachineDeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 2},
			want:   `Waiting for machinedeployment "workers" rollout to finish: 2 of 3 updated replicas are available...` + "\n",
		},
		"done": {
			revision: 7, wantDone: true,
			status: v1beta1.MachineDeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3},
			want:   `machinedeployment "workers" successfully rolled out` + "\n",
		},
		"another revision": {revision: 6, wantErr: "desired revision (6) is different from the running revision (7)"},
		"stopped": {
			status:  v1beta1.MachineDeploymentStatus{ObservedGeneration: 2, Conditions: exceeded},
			wantErr: `machinedeployment "workers" exceeded its progress deadline: Machine workers-x: no space`,
		},
		"stopped, and changed since": {
			status: v1beta1.MachineDeploymentStatus{ObservedGeneration: 1, Conditions: exceeded},
			want:   "Waiting for machinedeployment spec update to be observed...\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1beta1.MachineDeployment{
				ObjectMeta: metav1.ObjectMeta{Name: "workers", Generation: 2, Annotations: map[string]string{v1beta1.RevisionAnnotation: "7"}},
				Spec:       v1beta1.MachineDeploymentSpec{Replicas: ptr.To[int32](3)}, Status: tc.status,
			}
			got, done, err := statusOf(d, tc.revision)
			if got != tc.want || done != tc.wantDone || (err == nil) != (tc.wantErr == "") || err != nil && err.Error() != tc.wantErr {
				t.Errorf("got %q, %t, %v; want %q, %t, %q", got, done, err, tc.want, tc.wantDone, tc.wantErr)
			}
		})
	}
}

func TestWhatHindersARolloutIsNoted(t *testing.T) {
	d := &v1beta1.MachineDeployment{Status: v1beta1.MachineDeploymentStatus{Conditions: []metav1.Condition{
		{Type: v1beta1.ConditionAvailable, Status: metav1.ConditionFalse, Message: "1 of 3"},
		{Type: v1beta1.ConditionReplicaFailure, Status: metav1.ConditionFalse},
		{Type: v1beta1.ConditionInPlace, Status: metav1.ConditionFalse, Message: "cpu needs a new Machine"},
	}}}
	if got, want := hindrance(d), "note: InPlace is False: cpu needs a new Machine\n"; got != want {
		t.Errorf("got %q, want %q", strings.TrimSpace(got), want)
	}
}
