package machineset

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// waitForCache ends the reconcile while the cache does not show yet what was created or deleted before, because the number of replicas is
// then not known. It also ends the reconcile when the number is right.
type waitForCache struct {
	reader   client.Reader
	inFlight *inFlight
}

// Reconcile implements pipeline.Step.
func (t *waitForCache) Reconcile(ctx context.Context, s *scope) (bool, error) {
	state := t.inFlight.observe(s.set, s.machines, s.replicas)
	if s.surplus() == 0 {
		return false, nil
	}
	if state.check {
		live := &machinev1beta1.MachineList{}
		err := t.reader.List(ctx, live, client.InNamespace(s.set.Namespace), client.MatchingLabelsSelector{Selector: s.selector})
		if err != nil {
			return false, fmt.Errorf("listing Machines at the API server: %w", err)
		}
		created, deleted := unseen(s, live)
		state = t.inFlight.learn(s.set, created, deleted)
	}
	if !state.settled {
		log.FromContext(ctx).V(1).Info("Waiting for the cache to show Machines created or deleted before", "wait", state.wait)
		s.RequeueAfter(state.wait)
	}
	return state.settled, nil
}

// unseen returns what the API server shows and the cache does not: new replicas, by name, and former replicas, by UID.
func unseen(s *scope, live *machinev1beta1.MachineList) (created []string, deleted []types.UID) {
	cached := make(map[types.UID]bool, len(s.machines))
	for _, machine := range s.machines {
		cached[machine.UID] = true
	}
	pointers := make([]*machinev1beta1.Machine, 0, len(live.Items))
	for i := range live.Items {
		pointers = append(pointers, &live.Items[i])
	}
	claims := sortClaims(s.set.UID, s.selector, pointers)
	counts := map[types.UID]bool{}
	for _, machine := range append(claims.replicas, claims.adopt...) {
		counts[machine.UID] = true
		if !cached[machine.UID] {
			created = append(created, machine.Name)
		}
	}
	for _, replica := range s.replicas {
		if !counts[replica.UID] {
			deleted = append(deleted, replica.UID)
		}
	}
	return created, deleted
}
