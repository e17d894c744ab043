package machine

import (
	"context"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// drained waits until the drain controller has emptied the Node, or has found that there is nothing to drain. Its word wakes the
// Machine. Here a condition does decide: it is another controller's fact, kept nowhere else.
type drained struct{}

// Reconcile implements step.
func (d *drained) Reconcile(_ context.Context, s *scope) (bool, error) {
	return machineapi.Drained(s.machine), nil
}
