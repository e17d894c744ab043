package jobs_test

import (
	"context"
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/actuators/jobs"
)

func TestAJobInAQueueHasTheWordsOfKueue(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "uid", Labels: map[string]string{jobs.LabelQueue: "runs"}}}
	reserved := func(status, message string) any {
		return map[string]any{"type": "QuotaReserved", "status": status, "message": message}
	}
	for name, tc := range map[string]struct {
		conditions []any
		none       bool
		err        error
		want       string
	}{
		"it has no place":          {conditions: []any{map[string]any{"type": "Other", "status": "False", "message": "no"}, reserved("False", "insufficient unused quota")}, want: "insufficient unused quota"},
		"it has one":               {conditions: []any{reserved("True", "Quota reserved")}, want: "Kueue has admitted the Job"},
		"nobody has looked":        {want: "Kueue has not processed the Job yet"},
		"conditions of other form": {conditions: []any{"text", reserved("False", "")}, want: "Kueue has not processed the Job yet"},
		"there is no Workload yet": {none: true, want: "Kueue has not seen the Job yet"},
		"it may not be read":       {err: errors.New("forbidden"), want: "reading Kueue's Workload: forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			read := interceptor.NewClient(nil, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				asked := &client.ListOptions{}
				asked.ApplyOptions(options)
				if asked.Namespace != "ns" || asked.LabelSelector.String() != "kueue.x-k8s.io/job-uid=uid" {
					t.Errorf("Workloads are listed by %+v", asked)
				}
				if !tc.none {
					found := list.(*unstructured.UnstructuredList)
					found.Items = []unstructured.Unstructured{{Object: map[string]any{"status": map[string]any{"conditions": tc.conditions}}}}
				}
				return tc.err
			}})
			if got, want := jobs.InQueue(t.Context(), read, job), `Job run is in queue "runs": `+tc.want; got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
}
