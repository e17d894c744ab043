package drain

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// recordOutcome reports the outcome of an attempt that has ended, and schedules the next.
type recordOutcome struct {
	pool    *pool
	clock   clock.PassiveClock
	metrics *Metrics
	backoff backoff
}

// Reconcile implements pipeline.Step. The pool keeps the outcome until the status is written.
func (c *recordOutcome) Reconcile(_ context.Context, s *scope) (bool, error) {
	o, ended := c.pool.outcome(s.key)
	if !ended {
		return true, nil
	}
	if o.kind == nodeEmpty && o.target != targetOf(s.machine) {
		c.pool.drop(s.key) // the Machine has another Node since, which is still to be drained
		return true, nil
	}
	if !o.newest.IsZero() && s.progress.listed != o.target {
		s.progress.newest, s.progress.listed = o.newest, o.target
	}
	now := c.clock.Now()
	before := machineapi.FindCondition(s.machine.Status.Conditions, machinev1beta1.MachineDrained)
	s.machine.Status.Conditions = machineapi.WithCondition(s.machine.Status.Conditions, conditionOf(o), now)
	s.afterWrite = append(s.afterWrite, func() { c.pool.drop(s.key) })
	if o.kind == nodeEmpty {
		s.events = append(s.events, nodeDrained(s.original), drainSucceeded(s.original))
		s.afterWrite = append(s.afterWrite, func() { c.metrics.ended(resultSuccess, now.Sub(s.progress.since)) })
		return false, nil
	}
	if before == nil || before.Message != o.message {
		s.events = append(s.events, drainRequeued(s.original, o.message))
	}
	next := s.progress.retry.next(o, now, c.backoff)
	s.afterWrite = append(s.afterWrite, func() { s.progress.retry = next })
	s.RequeueAfter(next.notBefore.Sub(now))
	return true, nil
}

func conditionOf(o outcome) machinev1beta1.Condition {
	switch o.kind {
	case nodeEmpty:
		return drainedCondition("", "Drain finished successfully")
	case controlPlaneBusy:
		return notDrainedCondition(machinev1beta1.ConditionSeverityInfo, WaitingForControlPlane, o.message)
	default:
		return notDrainedCondition(machinev1beta1.ConditionSeverityWarning, machinev1beta1.MachineDrainError, o.message)
	}
}
