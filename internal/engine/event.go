package engine

import "time"

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
