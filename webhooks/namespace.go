package webhooks

import (
	"context"
	"fmt"
	"net/http"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// namespaceReview blocks the deletion of the manager's own namespace while it contains Machines.
// The manager would be deleted first, and nothing would destroy their instances.
type namespaceReview struct {
	reader client.Reader
	// own is the manager's namespace. The manager outlives any other namespace and destroys its
	// instances.
	own string
}

// Handle implements admission.Handler.
func (n *namespaceReview) Handle(ctx context.Context, request admission.Request) admission.Response {
	if n.own == "" || request.Name != n.own {
		return admission.Allowed("")
	}
	ctx, cancel := context.WithTimeout(ctx, secretDeadline)
	defer cancel()
	machines := &metav1.PartialObjectMetadataList{}
	machines.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind("MachineList"))
	if err := n.reader.List(ctx, machines, client.InNamespace(n.own), client.Limit(1)); err != nil {
		return admission.Errored(http.StatusInternalServerError,
			fmt.Errorf("listing the Machines in namespace %s: %w; try again", n.own, err))
	}
	if len(machines.Items) == 0 {
		return admission.Allowed("")
	}
	return admission.Denied(fmt.Sprintf("namespace %s contains Machines (%d) and the manager that destroys their "+
		"instances; "+
		"delete them first: kubectl -n %s delete machinesets.machine.openshift.io,machines.machine.openshift.io --all",
		n.own, 1+ptr.Deref(machines.RemainingItemCount, 0), n.own))
}
