package machinedeployment

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// release ends the holds of an earlier reconcile, wherever it ended: a MachineSet is to have as many
// Machines as it has. If the MachineDeployment is being deleted, nothing else is done.
type release struct {
	writer
}

// Reconcile implements pipeline.Step.
func (e *release) Reconcile(ctx context.Context, s *scope) (bool, error) {
	deleting := !s.deployment.DeletionTimestamp.IsZero()
	for _, r := range s.revisions {
		stays := s.strategy() == v1beta1.OnDelete && r != s.current && len(r.machines) <= r.replicas()
		if !s.held(r) || stays && !deleting {
			continue
		}
		freed := r.set.DeepCopy()
		delete(freed.Annotations, v1beta1.HoldAnnotation)
		freed.Spec.Replicas = ptr.To(int32(len(r.machines)))
		if err := e.patch(ctx, s, r.set, freed); err != nil {
			return false, fmt.Errorf("ending the hold of MachineSet %s: %w", r.set.Name, err)
		}
	}
	return !s.wrote && !deleting, nil
}

// hold holds MachineSets.
func (w writer) hold(ctx context.Context, s *scope, revisions ...*revision) error {
	for _, r := range revisions {
		held := r.set.DeepCopy()
		metav1.SetMetaDataAnnotation(&held.ObjectMeta, v1beta1.HoldAnnotation, s.deployment.Name)
		if err := w.patch(ctx, s, r.set, held); err != nil {
			return fmt.Errorf("holding MachineSet %s: %w", r.set.Name, err)
		}
	}
	return nil
}
