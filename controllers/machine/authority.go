package machine

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// checkAuthority ends the reconcile when another API is authoritative for the Machine, one that is
// being deleted included.
type checkAuthority struct {
	clock clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (a *checkAuthority) Reconcile(ctx context.Context, s *scope) (bool, error) {
	return machineapi.AuthorityOfMachine(s.machine).Sync(ctx, a.clock.Now()), nil
}
