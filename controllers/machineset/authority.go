package machineset

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// checkAuthority ends the reconcile when another API is authoritative for the MachineSet.
type checkAuthority struct {
	clock clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (a *checkAuthority) Reconcile(ctx context.Context, s *scope) (bool, error) {
	return machineapi.AuthorityOfMachineSet(s.set).Sync(ctx, a.clock.Now()), nil
}
