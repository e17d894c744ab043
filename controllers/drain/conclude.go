package drain

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// conclusion tells what came of a pass that has ended, and when the next is due.
type conclusion struct {
	pool    *pool
	clock   clock.PassiveClock
	metrics *Metrics
	pauses  pauses
}

// Reconcile implements step. The pool keeps the outcome until the status is written.
func (c *conclusion) Reconcile(_ context.Context, s *scope) (bool, error) {
	o, ended := c.pool.outcome(s.key)
	if !ended {
		return true, nil
	}
	now := c.clock.Now()
	before := machineapi.FindCondition(s.machine.Status.Conditions, machinev1beta1.MachineDrained)
	s.machine.Status.Conditions = machineapi.WithCondition(s.machine.Status.Conditions, conditionOf(o), now)
	s.settled = append(s.settled, func() { c.pool.drop(s.key) })
	if o.verdict == emptied {
		s.notices = append(s.notices, nodeDrained(s.original), drainSucceeded(s.original))
		s.settled = append(s.settled, func() { c.metrics.ended("success", now.Sub(s.record.since)) })
		return false, nil
	}
	if before == nil || before.Message != o.message {
		s.notices = append(s.notices, drainRequeued(s.original, o.message))
	}
	next := s.record.retry.next(o, now, c.pauses)
	s.settled = append(s.settled, func() { s.record.retry = next })
	s.RequeueAfter(next.notBefore.Sub(now))
	return true, nil
}

func conditionOf(o outcome) machinev1beta1.Condition {
	switch o.verdict {
	case emptied:
		return drained("", "Drain finished successfully")
	case notItsTurn:
		return undrained(machinev1beta1.ConditionSeverityInfo, WaitingForControlPlane, o.message)
	default:
		return undrained(machinev1beta1.ConditionSeverityWarning, machinev1beta1.MachineDrainError, o.message)
	}
}
