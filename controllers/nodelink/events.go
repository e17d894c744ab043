package nodelink

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// ambiguousMatch reports that a Node is not linked because more than one Machine or Node matches.
func ambiguousMatch(node *corev1.Node, err error) events.Event {
	return events.Warning(node, "AmbiguousMatch", "Match", err.Error())
}

// invalidNodeLabels reports which of the Machine's labels are invalid, and why.
func invalidNodeLabels(machine *machinev1beta1.Machine, node *corev1.Node, faults []string) events.Event {
	out := events.Warning(machine, "InvalidNodeLabels", "UpdateNode",
		"spec.metadata.labels has labels that Kubernetes does not allow; fix or remove them: "+strings.Join(faults, "; "))
	out.Related = node
	return out
}

// failedUpdateNode reports that the Machine's metadata could not be applied to its Node.
func failedUpdateNode(machine *machinev1beta1.Machine, node *corev1.Node, err error) events.Event {
	out := events.Warning(machine, "FailedUpdateNode", "UpdateNode", err.Error())
	out.Related = node
	return out
}
