package terraform

import (
	"errors"
	"testing"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/tofu"
)

func TestDoubtful(t *testing.T) {
	const instance, disk = "thing.this", "thing.disk"
	event := func(kind tofu.EventKind, address string) tofu.Event {
		return tofu.Event{Kind: kind, Address: address, Action: tofu.ActionCreate}
	}
	interrupted := errors.Join(&tofu.Error{Class: tofu.Interrupted}, runs.ErrStopping)
	for name, tc := range map[string]struct {
		decision decision
		events   []tofu.Event
		lookedUp bool
		outcome  error
		want     bool
	}{
		"a success is not":                                          {events: []tofu.Event{event(tofu.EventStarted, instance), event(tofu.EventCompleted, instance)}},
		"an engine that was killed is":                              {outcome: &tofu.Error{Class: tofu.Killed}, want: true},
		"an interrupt before anything is made is not":               {outcome: interrupted},
		"an interrupt while the instance is made is":                {events: []tofu.Event{event(tofu.EventStarted, instance)}, outcome: interrupted, want: true},
		"a failure to make the instance is: the answer may be lost": {events: []tofu.Event{event(tofu.EventStarted, instance), event(tofu.EventFailed, instance)}, outcome: &tofu.Error{Class: tofu.Transient}, want: true},
		"a failure after the instance is made is not":               {events: []tofu.Event{event(tofu.EventStarted, instance), event(tofu.EventCompleted, instance), event(tofu.EventStarted, disk)}, outcome: interrupted},
		"a failure to make something else is not":                   {events: []tofu.Event{event(tofu.EventStarted, disk), event(tofu.EventFailed, disk)}, outcome: &tofu.Error{Class: tofu.Quota}},
		"a failed lookup leaves what it was to find out":            {decision: decision{operation: runs.Destroy, lookup: true}, outcome: &tofu.Error{Class: tofu.Transient}, want: true},
		"a failure after a lookup that told is not":                 {decision: decision{operation: runs.Create, lookup: true}, lookedUp: true, outcome: &tofu.Error{Class: tofu.Credentials}},
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
