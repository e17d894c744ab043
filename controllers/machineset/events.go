package machineset

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// maxNote is how many bytes of a note the events API takes.
const maxNote = 1024

// notice is an event about to be sent.
type notice struct {
	regarding runtime.Object
	kind      string
	reason    string
	action    string
	note      string
}

func (n notice) send(recorder events.EventRecorder) {
	recorder.Eventf(n.regarding, nil, n.kind, n.reason, n.action, "%s", n.note)
}

// reconcileError says that a pass over the MachineSet failed.
func reconcileError(set *machinev1beta1.MachineSet, err error) notice {
	return notice{
		regarding: set, kind: corev1.EventTypeWarning, reason: "ReconcileError", action: "Reconcile", note: shortened(err.Error()),
	}
}

// shortened cuts a text to what a note can hold, at a whole character.
func shortened(text string) string {
	if len(text) <= maxNote {
		return text
	}
	return strings.ToValidUTF8(text[:maxNote-3], "") + "..."
}
