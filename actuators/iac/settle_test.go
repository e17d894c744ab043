package iac

import (
	"errors"
	"testing"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

func TestDoubtful(t *testing.T) {
	const instance, disk = "thing.this", "thing.disk"
	event := func(kind engine.EventKind, address string) engine.Event {
		return engine.Event{Kind: kind, Address: address, Action: engine.ActionCreate}
	}
	interrupted := errors.Join(&engine.Error{Class: engine.Interrupted}, runs.ErrStopping)
	for name, tc := range map[string]struct {
		decision decision
		events   []engine.Event
		lookedUp bool
		outcome  error
		want     bool
	}{
		"a success is not":                                          {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventCompleted, instance)}},
		"an engine that was killed is":                              {outcome: &engine.Error{Class: engine.Killed}, want: true},
		"an interrupt before anything is made is not":               {outcome: interrupted},
		"an interrupt while the instance is made is":                {events: []engine.Event{event(engine.EventStarted, instance)}, outcome: interrupted, want: true},
		"a failure to make the instance is: the answer may be lost": {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventFailed, instance)}, outcome: &engine.Error{Class: engine.Transient}, want: true},
		"a failure after the instance is made is not":               {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventCompleted, instance), event(engine.EventStarted, disk)}, outcome: interrupted},
		"a failure to make something else is not":                   {events: []engine.Event{event(engine.EventStarted, disk), event(engine.EventFailed, disk)}, outcome: &engine.Error{Class: engine.Quota}},
		"a failed lookup leaves what it was to find out":            {decision: decision{operation: runs.Destroy, lookup: true}, outcome: &engine.Error{Class: engine.Transient}, want: true},
		"a failure after a lookup that told is not":                 {decision: decision{operation: runs.Create, lookup: true}, lookedUp: true, outcome: &engine.Error{Class: engine.Credentials}},
		"a change that is refused is not":                           {decision: decision{operation: runs.Update}, outcome: actuators.UnsupportedChange("no")},
	} {
		t.Run(name, func(t *testing.T) {
			run := &task{decision: tc.decision, lookedUp: tc.lookedUp}
			for _, event := range tc.events {
				run.follow(event)
			}
			if got := run.doubtful(tc.outcome); got != tc.want {
				t.Errorf("doubtful: %t, want %t", got, tc.want)
			}
		})
	}
}
