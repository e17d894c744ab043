package nodelink

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// ambiguousMatch says that a Node cannot be linked because more than one Machine or Node would do.
func ambiguousMatch(node *corev1.Node, err error) events.Event {
	return events.Warning(node, "AmbiguousMatch", "Match", err.Error())
}

// invalidNodeLabels says which of the Machine's labels cannot be put on its Node, and why.
func invalidNodeLabels(machine *machinev1beta1.Machine, node *corev1.Node, faults []string) events.Event {
	out := events.Warning(machine, "InvalidNodeLabels", "UpdateNode",
		"spec.metadata.labels has labels that Kubernetes does not allow; fix or remove them: "+strings.Join(faults, "; "))
	out.Related = node
	return out
}

// failedUpdateNode says that the Node could not be given what the Machine wants.
func failedUpdateNode(machine *machinev1beta1.Machine, node *corev1.Node, err error) events.Event {
	out := events.Warning(machine, "FailedUpdateNode", "UpdateNode", err.Error())
	out.Related = node
	return out
}
