package drain

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// checkExempt skips the drain of Machines that have no Node or are excluded.
type checkExempt struct {
	pool  *pool
	clock clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (e *checkExempt) Reconcile(_ context.Context, s *scope) (bool, error) {
	why := exemptReason(s.machine)
	if why == "" {
		return true, nil
	}
	e.pool.drop(s.key)
	s.machine.Status.Conditions = machineapi.WithCondition(s.machine.Status.Conditions,
		drainedCondition("", "Node drain skipped"), e.clock.Now())
	s.events = append(s.events, drainSkipped(s.original, why))
	return false, nil
}

// exemptReason returns why the Machine's Node is not drained, or "".
func exemptReason(machine *machinev1beta1.Machine) string {
	if _, excluded := machine.Annotations[machineapi.ExcludeDrainAnnotation]; excluded {
		return "the annotation " + machineapi.ExcludeDrainAnnotation + " is set"
	}
	if machine.Status.NodeRef == nil {
		return "the Machine has no Node"
	}
	return ""
}
