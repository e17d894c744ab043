package drain

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// excludeAnnotation exempts a Machine from being drained, whatever its value.
const excludeAnnotation = "machine.openshift.io/exclude-node-draining"

// exemption ends the drain of Machines that have no Node or do not want one.
type exemption struct {
	pool  *pool
	clock clock.PassiveClock
}

// Reconcile implements step.
func (e *exemption) Reconcile(_ context.Context, s *scope) (bool, error) {
	why := exempt(s.machine)
	if why == "" {
		return true, nil
	}
	e.pool.drop(s.key)
	s.machine.Status.Conditions = machineapi.WithCondition(s.machine.Status.Conditions, drained("", "Node drain skipped"), e.clock.Now())
	s.notices = append(s.notices, drainSkipped(s.original, why))
	return false, nil
}

// exempt answers why the Machine is not drained, nothing when it is.
func exempt(machine *machinev1beta1.Machine) string {
	if _, excluded := machine.Annotations[excludeAnnotation]; excluded {
		return "the annotation " + excludeAnnotation + " is set"
	}
	if machine.Status.NodeRef == nil {
		return "the Machine has no Node"
	}
	return ""
}
