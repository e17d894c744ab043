package nodelink

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// maxNote is how many bytes of a note the events API takes.
const maxNote = 1024

// notice is an event about to be sent. All of this controller's are warnings.
type notice struct {
	regarding, related runtime.Object
	reason, action     string
	note               string
}

func (n notice) send(recorder events.EventRecorder) {
	recorder.Eventf(n.regarding, n.related, corev1.EventTypeWarning, n.reason, n.action, "%s", shortened(n.note))
}

// ambiguousMatch says that a Node cannot be linked because more than one Machine or Node would do.
func ambiguousMatch(node *corev1.Node, err error) notice {
	return notice{regarding: node, reason: "AmbiguousMatch", action: "Match", note: err.Error()}
}

// invalidNodeLabels says which of the Machine's labels cannot be put on its Node, and why.
func invalidNodeLabels(machine *machinev1beta1.Machine, node *corev1.Node, faults []string) notice {
	return notice{
		regarding: machine, related: node, reason: "InvalidNodeLabels", action: "UpdateNode",
		note: "spec.metadata.labels has labels that Kubernetes does not allow; mend or remove them: " + strings.Join(faults, "; "),
	}
}

// failedUpdateNode says that the Node could not be given what the Machine wants.
func failedUpdateNode(machine *machinev1beta1.Machine, node *corev1.Node, err error) notice {
	return notice{regarding: machine, related: node, reason: "FailedUpdateNode", action: "UpdateNode", note: err.Error()}
}

// shortened cuts a text to what a note can hold, at a whole character.
func shortened(text string) string {
	if len(text) <= maxNote {
		return text
	}
	return strings.ToValidUTF8(text[:maxNote-3], "") + "..."
}
