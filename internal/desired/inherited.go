package desired

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// inherits reports whether a Machine's instance may have been created by other means, and the
// module can find it by name: the Machine is older than this installation, or of the control plane.
// OpenShift's installer creates those instances before their Machines.
func (r *Reader) inherits(machine *machinev1beta1.Machine, f *lifecycle.Facts) bool {
	if r.installation == nil || f.Provisioned || f.Witness != nil || f.HasResources() ||
		!r.older(machine) && !installed(machine) {
		return false
	}
	_, served, err := r.Complete(machine)
	return err == nil && served.AdoptsByName()
}

// older reports whether a Machine is older than this installation.
func (r *Reader) older(machine *machinev1beta1.Machine) bool {
	return machine.CreationTimestamp.Time.Before(r.installation.Since())
}

// installed reports whether the installer may have created a Machine's instance. It creates no
// instance for a Machine of a MachineSet.
func installed(machine *machinev1beta1.Machine) bool {
	owner := metav1.GetControllerOf(machine)
	return lifecycle.ControlPlane(machine) && (owner == nil || owner.Kind != "MachineSet")
}

// inherited completes the request of a Machine whose instance is searched by name. A plan shows
// whether there is one. The manager's own policy does not adopt it for a new Machine: creating a
// Machine of that name and role would be enough to take over, and delete, the instance.
func (r *Reader) inherited(asked lifecycle.AdoptionRequest, machine *machinev1beta1.Machine) lifecycle.AdoptionRequest {
	ungranted := asked.Adoption == lifecycle.AdoptionAdopt && !r.older(machine) &&
		adoption.GrantOf(r.installation, machine) == nil
	if asked.Denied == "" && (asked.Adoption == lifecycle.AdoptionNone || ungranted) {
		asked.Adoption = lifecycle.AdoptionPlan
	}
	return asked
}
