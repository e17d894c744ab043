package engine

import (
	"strings"
	"time"
)

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events.
const (
	EventStarted   EventKind = "started"
	EventProgress  EventKind = "progress"
	EventCompleted EventKind = "completed"
	EventFailed    EventKind = "failed"
)

// Event reports that the engine is working on a resource.
type Event struct {
	Ref
	Kind    EventKind
	Address string
	Action  Action
	// ID is the object's ID if the engine reports it.
	ID      string
	Elapsed time.Duration
}

// ForModule returns the event with the resource's address inside a module call. It returns false if
// the resource is not in that call.
func (e Event) ForModule(call string) (Event, bool) {
	address, ok := strings.CutPrefix(e.Address, call+".")
	if ok {
		e.Address, e.Ref = address, e.within(call)
	}
	return e, ok
}
