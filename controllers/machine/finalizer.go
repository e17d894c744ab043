package machine

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// addFinalizer adds the finalizer that keeps a Machine until its instance is deleted.
type addFinalizer struct {
	client client.Client
}

// Reconcile implements pipeline.Step. The write triggers another reconcile.
func (f *addFinalizer) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if controllerutil.ContainsFinalizer(s.machine, machinev1beta1.MachineFinalizer) {
		return true, nil
	}
	if err := patchFinalizers(ctx, f.client, s, controllerutil.AddFinalizer); err != nil {
		return false, fmt.Errorf("adding the finalizer: %w", err)
	}
	return false, nil
}

// removeFinalizer removes the finalizer of a Machine whose instance is deleted.
type removeFinalizer struct {
	client client.Client
}

// Reconcile implements pipeline.Step. If another finalizer keeps the Machine, its status says first
// that the instance is gone.
func (r *removeFinalizer) Reconcile(ctx context.Context, s *scope) (bool, error) {
	said := machineapi.FindCondition(s.original.Status.Conditions, machinev1beta1.InstanceExistsCondition)
	if len(s.machine.Finalizers) > 1 && (said == nil || said.Status != corev1.ConditionFalse) {
		s.RequeueAfter(cacheRetry)
		return false, nil
	}
	if err := patchFinalizers(ctx, r.client, s, controllerutil.RemoveFinalizer); err != nil {
		return false, fmt.Errorf("removing the finalizer: %w", err)
	}
	return false, nil
}

// patchFinalizers writes the list of finalizers, and nothing else.
func patchFinalizers(ctx context.Context, writer client.Writer, s *scope,
	change func(client.Object, string) bool) error {
	s.stale = true
	wanted := s.original.DeepCopy()
	change(wanted, machinev1beta1.MachineFinalizer)
	return s.written(writer.Patch(ctx, wanted, pipeline.IfUnchanged(s.original)))
}
