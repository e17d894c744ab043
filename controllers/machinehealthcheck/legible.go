package machinehealthcheck

import (
	"context"
)

// legibility ends the pass of a MachineHealthCheck whose spec cannot be read in full: what it means to say is not known, so nothing is
// done. Only a change of it helps, and that is an event.
type legibility struct {
	metrics *Metrics
}

// Reconcile implements step.
func (l *legibility) Reconcile(_ context.Context, s *scope) (bool, error) {
	if s.misread == nil {
		return true, nil
	}
	l.metrics.covered(s.check, 0)
	l.metrics.shortCircuited(s.check, true)
	showBlocked(s, tally{}, invalidSpecReason, s.misread.Error())
	return false, nil
}
