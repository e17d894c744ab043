package machine

import (
	"context"

	"k8s.io/utils/clock"

	shared "github.com/machine-iac/machine-iac-operator/controllers/authority"
)

// authority ends the pass when the Machine is not ours to act on, one that is being deleted included.
type authority struct {
	clock clock.PassiveClock
}

// Reconcile implements step.
func (a *authority) Reconcile(ctx context.Context, s *scope) (bool, error) {
	return shared.OfMachine(s.machine).Settle(ctx, a.clock.Now()), nil
}
