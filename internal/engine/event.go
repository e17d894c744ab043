package engine

import "time"

// EventKind says what an Event tells.
type EventKind string

// The kinds of events.
const (
	EventStarted   EventKind = "started"
	EventProgress  EventKind = "progress"
	EventCompleted EventKind = "completed"
	EventFailed    EventKind = "failed"
)

// Event tells that the engine works on a resource.
type Event struct {
	Ref
	Kind    EventKind
	Address string
	Action  Action
	// ID is the object's id, where the engine tells it.
	ID      string
	Elapsed time.Duration
}
