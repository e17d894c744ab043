package machine

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// finalizer sees to it that a Machine cannot go before its instance.
type finalizer struct {
	client client.Client
}

// Reconcile implements step. The write wakes the Machine again.
func (f *finalizer) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if controllerutil.ContainsFinalizer(s.machine, machinev1beta1.MachineFinalizer) {
		return true, nil
	}
	return false, f.set(ctx, s)
}

func (f *finalizer) set(ctx context.Context, s *scope) error {
	wanted := s.original.DeepCopy()
	controllerutil.AddFinalizer(wanted, machinev1beta1.MachineFinalizer)
	if err := patchFinalizers(ctx, f.client, s.original, wanted); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	return nil
}

// release lets a Machine go whose instance is gone.
type release struct {
	client client.Client
}

// Reconcile implements step.
func (r *release) Reconcile(ctx context.Context, s *scope) (bool, error) {
	wanted := s.original.DeepCopy()
	controllerutil.RemoveFinalizer(wanted, machinev1beta1.MachineFinalizer)
	if err := patchFinalizers(ctx, r.client, s.original, wanted); err != nil {
		return false, fmt.Errorf("removing the finalizer: %w", err)
	}
	return true, nil
}

// patchFinalizers replaces the list of finalizers, which a merge patch can only do whole: hence the lock.
func patchFinalizers(ctx context.Context, writer client.Writer, before, wanted *machinev1beta1.Machine) error {
	return writer.Patch(ctx, wanted, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
