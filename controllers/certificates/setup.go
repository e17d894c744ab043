package certificates

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// concurrency must stay 1, so that of two requests for one Node the second is checked after the
	// first is approved.
	concurrency = 1
	// nodeIndex finds requests by the Node that they are for.
	nodeIndex = "certificates.node"
)

// SetupWithManager creates a Controller and registers it, its watches and its index with the manager.
// Client and Reader default to the manager's.
func SetupWithManager(ctx context.Context, mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, concurrency)
	c, err := New(options)
	if err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &certificatesv1.CertificateSigningRequest{}, nodeIndex,
		nodeOf); err != nil {
		return fmt.Errorf("indexing certificate requests by Node: %w", err)
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(&certificatesv1.CertificateSigningRequest{}).
			Watches(&machinev1beta1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.requestsFor),
				builder.WithPredicates(pipeline.Changes()))
	})
}

// nodeOf returns the name of the Node that a request is for, if it is a kubelet's.
func nodeOf(object client.Object) []string {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok || kinds[csr.Spec.SignerName] == "" {
		return nil
	}
	r, refused := read(csr)
	if refused != nil {
		return nil
	}
	return []string{r.node}
}

// requestsFor returns the requests of Nodes that a Machine may be.
func (c *Controller) requestsFor(ctx context.Context, object client.Object) []reconcile.Request {
	machine, ok := object.(*machinev1beta1.Machine)
	if !ok {
		return nil
	}
	names := map[string]bool{machine.Name: true}
	for _, address := range machine.Status.Addresses {
		names[address.Address] = true
	}
	if machine.Status.NodeRef != nil {
		names[machine.Status.NodeRef.Name] = true
	}
	var requests []reconcile.Request
	for name := range names {
		found := &certificatesv1.CertificateSigningRequestList{}
		if err := c.client.List(ctx, found, client.MatchingFields{nodeIndex: name},
			client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Cannot list the certificate requests of a Machine", "Machine", machine.Name)
			return nil
		}
		for i := range found.Items {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: found.Items[i].Name}})
		}
	}
	return requests
}
