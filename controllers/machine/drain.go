package machine

import (
	"context"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// waitForDrain waits until the drain controller has set Drained to True, which triggers a
// reconcile. This is the only condition that anything is decided from: it belongs to another
// controller and is kept nowhere else.
type waitForDrain struct{}

// Reconcile implements pipeline.Step.
func (d *waitForDrain) Reconcile(_ context.Context, s *scope) (bool, error) {
	return machineapi.Drained(s.machine), nil
}
