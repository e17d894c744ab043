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
		if err := e.free(ctx, s, r, len(r.machines)); err != nil {
			return false, err
		}
	}
	for _, r := range s.orphans {
		number := len(r.machines)
		if r.set.Generation == 1 && r.replicas() > 0 { // somebody has copied or restored a held MachineSet
			number = r.replicas()
		}
		if err := e.free(ctx, s, r, number); err != nil {
			return false, err
		}
	}
	return !s.wrote && !deleting, nil
}

// free ends the hold of a MachineSet.
func (e *release) free(ctx context.Context, s *scope, r *revision, number int) error {
	freed := r.set.DeepCopy()
	delete(freed.Annotations, v1beta1.HoldAnnotation)
	freed.Spec.Replicas = ptr.To(int32(number))
	if err := e.patch(ctx, s, r.set, freed); err != nil {
		return fmt.Errorf("ending the hold of MachineSet %s: %w", r.set.Name, err)
	}
	return nil
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
