package machineset

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// authority ends the pass when the MachineSet is not ours to act on.
type authority struct {
	clock clock.PassiveClock
}

// Reconcile implements step.
func (a *authority) Reconcile(ctx context.Context, s *scope) (bool, error) {
	return machineapi.AuthorityOfMachineSet(s.set).Sync(ctx, a.clock.Now()), nil
}
