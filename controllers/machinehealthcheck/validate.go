package machinehealthcheck

import (
	"context"
)

// validateSpec ends the reconcile of a MachineHealthCheck whose spec has invalid values. A change
// of it triggers a reconcile.
type validateSpec struct {
	metrics *Metrics
}

// Reconcile implements pipeline.Step.
func (l *validateSpec) Reconcile(_ context.Context, s *scope) (bool, error) {
	if s.specErr == nil {
		return true, nil
	}
	l.metrics.covered(s.check, 0)
	l.metrics.shortCircuited(s.check, true)
	setInvalid(s, counts{}, invalidSpecReason, s.specErr.Error())
	return false, nil
}
