package machine

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// authority ends the pass when the Machine is not ours to act on, one that is being deleted included.
type authority struct {
	clock clock.PassiveClock
}

// Reconcile implements step.
func (a *authority) Reconcile(ctx context.Context, s *scope) (bool, error) {
	return machineapi.AuthorityOfMachine(s.machine).Sync(ctx, a.clock.Now()), nil
}
