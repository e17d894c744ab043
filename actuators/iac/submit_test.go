package iac

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

func TestARunInProgressReportsSinceWhen(t *testing.T) {
	queued := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	stored := func(at time.Time) *metav1.Time {
		rounded := metav1.NewTime(at.Truncate(time.Second))
		return &rounded
	}
	for name, tc := range map[string]struct {
		status runs.Status
		want   v1alpha1.RunStatus
	}{
		"one that waits has not begun": {
			runs.Status{Operation: runs.Create, Phase: runs.Queued, QueuedAt: queued},
			v1alpha1.RunStatus{Operation: v1alpha1.RunCreate, QueuedAt: stored(queued)},
		},
		"one that runs has": {
			runs.Status{Operation: runs.Destroy, Phase: runs.Running, QueuedAt: queued, StartedAt: queued.Add(time.Minute)},
			v1alpha1.RunStatus{Operation: v1alpha1.RunDestroy, QueuedAt: stored(queued), StartedAt: stored(queued.Add(time.Minute))},
		},
		"one that has begun and waits in the cluster says for what": {
			runs.Status{Operation: runs.Create, Phase: runs.Running, QueuedAt: queued, StartedAt: queued, Waits: "a queue"},
			v1alpha1.RunStatus{Operation: v1alpha1.RunCreate, QueuedAt: stored(queued), StartedAt: stored(queued), WaitsFor: "a queue"},
		},
		"one of throttled credentials says since when": {
			runs.Status{Operation: runs.Destroy, Phase: runs.Queued, QueuedAt: queued, ThrottledSince: queued},
			v1alpha1.RunStatus{Operation: v1alpha1.RunDestroy, QueuedAt: stored(queued), WaitsFor: "the infrastructure has throttled the credentials Secret since 2026-01-02T03:04:05Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &machinev1beta1.Machine{}
			o := newObservation(runs.Create, machine, nil)
			if _, busy := actuators.AsRequeueAfter(o.inProgress(tc.status)); !busy {
				t.Error("it is not in progress")
			}
			o.write()
			if diff := cmp.Diff(&tc.want, readProviderStatus(machine).Run); diff != "" {
				t.Errorf("the run (-want +got):\n%s", diff)
			}
		})
	}
}
