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
	// labelJobUID is what Kueue finds the Workload of a Job by.
	labelJobUID = "kueue.x-k8s.io/job-uid"
	// quotaReserved is the condition of a Workload that says why its Job is not admitted.
	quotaReserved = "QuotaReserved"
)

var workloads = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "WorkloadList"}

// inQueue returns where a Job waits that was not admitted, with Kueue's words, for people.
func (b *begun) inQueue(ctx context.Context) string {
	return fmt.Sprintf("Job %s is in the queue %q: %s", b.job.Name, b.job.Labels[LabelQueue], b.kueueSays(ctx))
}

// kueueSays returns why Kueue has not admitted the Job. What cannot be read is no error: nothing is decided from it.
func (b *begun) kueueSays(ctx context.Context) string {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(workloads)
	err := b.runner.options.Client.List(ctx, found, client.InNamespace(b.job.Namespace), client.MatchingLabels{labelJobUID: string(b.job.UID)})
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return "Kueue is not installed, and nothing else admits it"
	case err != nil:
		return "what Kueue says of it cannot be read: " + err.Error()
	case len(found.Items) == 0:
		return "Kueue has not seen it yet"
	}
	conditions, _, _ := unstructured.NestedSlice(found.Items[0].Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		message, _ := condition["message"].(string)
		switch {
		case condition["type"] != quotaReserved:
		case condition["status"] == "True":
			return "Kueue has admitted it"
		case message != "":
			return message
		}
	}
	return "Kueue has not looked at it yet"
}

// goesOn says that the Job waits no more.
func (b *begun) goesOn() {
	if b.waits != nil {
		b.waits("")
	}
}
