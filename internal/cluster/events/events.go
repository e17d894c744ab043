// Package events sends events in one shape.
package events

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolsevents "k8s.io/client-go/tools/events"
)

// maxNote is how many bytes of a note the events API takes.
const maxNote = 1024

// Recorder sends events.
type Recorder = toolsevents.EventRecorder

// Event is an event about to be sent.
type Event struct {
	Regarding runtime.Object
	// Related is a second object that the event is about; nil for none.
	Related runtime.Object
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type   string
	Reason string
	Action string
	Note   string
}

// Normal makes an event that needs nobody's attention.
func Normal(regarding runtime.Object, reason, action, note string) Event {
	return Event{Regarding: regarding, Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: note}
}

// Warning makes an event that somebody should see.
func Warning(regarding runtime.Object, reason, action, note string) Event {
	return Event{Regarding: regarding, Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note}
}

// Send sends the event; a note that is too long is cut at a whole character.
func (e Event) Send(recorder Recorder) {
	recorder.Eventf(e.Regarding, e.Related, e.Type, e.Reason, e.Action, "%s", Shortened(e.Note))
}

// Shortened cuts a text to what a note can hold, at a whole character.
func Shortened(text string) string {
	if len(text) <= maxNote {
		return text
	}
	return strings.ToValidUTF8(text[:maxNote-3], "") + "..."
}
