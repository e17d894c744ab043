package iac

import (
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// changesControlPlane returns why an adoption is refused that would change a control-plane
// instance, or "". A wrong providerSpec must not cost etcd a member.
func (t *task) changesControlPlane(report *engine.Report, planned *engine.PlannedObjects) string {
	if !lifecycle.ControlPlane(t.machine) {
		return ""
	}
	changes := adoptionFound(report, planned).Changes
	if len(changes) == 0 {
		return ""
	}
	return "an adoption must not change a control-plane instance, but would change " + strings.Join(changes, "; ") +
		": change the providerSpec to match the instance"
}
