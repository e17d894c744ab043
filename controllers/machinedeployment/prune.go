package machinedeployment

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// defaultHistory is how many old MachineSets are kept.
const defaultHistory = 10

// prune deletes the oldest MachineSets without Machines.
type prune struct {
	writer
}

// Reconcile implements pipeline.Step.
func (p *prune) Reconcile(ctx context.Context, s *scope) (bool, error) {
	needed := map[string]bool{}
	for _, r := range s.revisions {
		for _, machine := range r.machines {
			needed[machine.Annotations[v1beta1.MovedFromAnnotation]] = true
		}
	}
	var empty []*revision
	for _, r := range s.old() {
		if s.current != nil && r.replicas() == 0 && len(r.machines)+r.leaving == 0 && !needed[r.set.Name] {
			empty = append(empty, r)
		}
	}
	surplus := len(empty) - int(ptr.Deref(s.deployment.Spec.RevisionHistoryLimit, defaultHistory))
	for _, r := range empty[:max(0, surplus)] {
		err := p.write(s, func() error {
			return p.client.Delete(ctx, r.set, client.Preconditions{UID: &r.set.UID, ResourceVersion: &r.set.ResourceVersion})
		})
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("deleting MachineSet %s of an old revision: %w", r.set.Name, err)
		}
	}
	return true, nil
}
