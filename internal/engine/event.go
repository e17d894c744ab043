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

// Event reports that the engine works on a resource.
type Event struct {
	Ref
	Kind    EventKind
	Address string
	Action  Action
	// ID is the object's id, where the engine reports it.
	ID      string
	Elapsed time.Duration
}

// ForModule returns the event with the address that the resource has in a module, where it is in that call of it.
func (e Event) ForModule(call string) (Event, bool) {
	address, ok := strings.CutPrefix(e.Address, call+".")
	if ok {
		e.Address, e.Ref = address, e.within(call)
	}
	return e, ok
}
