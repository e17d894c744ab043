package jobs

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// labelJobUID is the label by which Kueue finds a Job's Workload.
	labelJobUID = "kueue.x-k8s.io/job-uid"
	// quotaReserved is the condition of a Workload that says why its Job is not admitted.
	quotaReserved = "QuotaReserved"
)

var workloads = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "WorkloadList"}

// inQueue describes, for people, where a suspended Job waits, in Kueue's words.
func (b *begun) inQueue(ctx context.Context) string {
	return fmt.Sprintf("Job %s is in queue %q: %s", b.job.Name, b.job.Labels[LabelQueue], b.kueueSays(ctx))
}

// kueueSays returns why Kueue has not admitted the Job. Read errors become part of the text,
// because no decision is based on it.
func (b *begun) kueueSays(ctx context.Context) string {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(workloads)
	err := b.runner.options.Client.List(ctx, found, client.InNamespace(b.job.Namespace),
		client.MatchingLabels{labelJobUID: string(b.job.UID)})
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return "Kueue is not installed, and nothing else admits the Job"
	case err != nil:
		return "reading Kueue's Workload: " + err.Error()
	case len(found.Items) == 0:
		return "Kueue has not seen the Job yet"
	}
	conditions, _, _ := unstructured.NestedSlice(found.Items[0].Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		message, _ := condition["message"].(string)
		switch {
		case condition["type"] != quotaReserved:
		case condition["status"] == "True":
			return "Kueue has admitted the Job"
		case message != "":
			return message
		}
	}
	return "Kueue has not processed the Job yet"
}

// goesOn reports that the Job no longer waits.
func (b *begun) goesOn() {
	if b.waits != nil {
		b.waits("")
	}
}
