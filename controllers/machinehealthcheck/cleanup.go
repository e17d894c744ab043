package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// deleteRequests deletes the remediation requests of healthy Machines.
type deleteRequests struct {
	client client.Client
}

// Reconcile implements pipeline.Step.
func (c *deleteRequests) Reconcile(ctx context.Context, s *scope) (bool, error) {
	var failures []error
	for _, target := range s.targets {
		if !s.recovered(target) {
			continue
		}
		if err := c.delete(ctx, s.external, s.external.requests[target.machine.Name]); err != nil {
			failures = append(failures, err)
		}
	}
	return true, errors.Join(failures...)
}

// recovered reports whether a Machine is healthy and still has a remediation request.
func (s *scope) recovered(t *target) bool {
	if s.external == nil {
		return false
	}
	request := s.external.requests[t.machine.Name]
	return request != nil && t.healthy() && request.DeletionTimestamp.IsZero() && ownedBy(request, t.machine)
}

func (c *deleteRequests) delete(ctx context.Context, e *external, request *metav1.PartialObjectMetadata) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(e.kind)
	object.SetNamespace(request.Namespace)
	object.SetName(request.Name)
	err := c.client.Delete(ctx, object, client.Preconditions{UID: &request.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting the remediation request %s %s of a healthy Machine: %w; %s",
			e.kind.Kind, request.Name, err, fixFor(err, e.kind, "list, create and delete"))
	}
	log.FromContext(ctx).Info("Deleted the remediation request of a healthy Machine", "Machine", request.Name, "kind",
		e.kind.Kind)
	return nil
}
