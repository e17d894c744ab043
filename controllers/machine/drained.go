package machine

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/controllers/conditions"
)

// drained waits until the drain controller has emptied the Node, or has found that there is nothing to drain. Its word wakes the
// Machine. Here a condition does decide: it is another controller's fact, kept nowhere else.
type drained struct{}

// Reconcile implements step.
func (d *drained) Reconcile(_ context.Context, s *scope) (bool, error) {
	found := conditions.Find(s.machine.Status.Conditions, machinev1beta1.MachineDrained)
	return found != nil && found.Status == corev1.ConditionTrue, nil
}
