package terraform

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// TestAPausedEngineGoesOn has two Machines in a batch.
func TestAPausedEngineGoesOn(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	event := func(kind engine.EventKind, address string) engine.Event {
		return engine.Event{Kind: kind, Address: address, Action: engine.ActionCreate}
	}
	started, completed := event(engine.EventStarted, "vm.this"), event(engine.EventCompleted, "vm.this")
	failed := event(engine.EventFailed, "vm.this")
	marker := event(engine.EventCompleted, "terraform_data.m0")
	reads := event(engine.EventStarted, "data.vm.this")
	reads.Data = true
	inside := func(event engine.Event) func(*states) { return func(s *states) { s.note(event, 0, true) } }
	root := func(event engine.Event) func(*states) { return func(s *states) { s.note(event, 0, false) } }
	begun, made := inside(started), inside(completed)
	stored := func(s *states) { s.progress.stored(1, now) }
	const never = 0
	for name, tc := range map[string]struct {
		events []func(*states)
		after  time.Duration
	}{
		"nothing begins":                         {nil, quietAtFirst + quietFor},
		"an object is in the making":             {[]func(*states){begun}, never},
		"one is made, another is not":            {[]func(*states){begun, begun, made}, never},
		"a complete Machine is not in the state": {[]func(*states){begun, begun, made, root(marker)}, writesEvery},
		"it is":                                  {[]func(*states){begun, begun, made, root(marker), stored}, never},
		"all are complete":                       {[]func(*states){root(marker), root(marker)}, -time.Second},
		"a marker of a module is none":           {[]func(*states){begun, inside(marker), begun}, never},
		"an object fails, and nothing follows":   {[]func(*states){begun, inside(failed)}, quietFor},
		"a read that fails is not reported":      {[]func(*states){begun, made, inside(reads)}, quietFor},
		"a read ends while an object is made":    {[]func(*states){begun, inside(reads)}, never},
	} {
		t.Run(name, func(t *testing.T) {
			s := &states{clock: clocktesting.NewFakePassiveClock(now)}
			s.progress.left = make([]int, 2)
			s.progress.pauses(now)
			for _, happens := range tc.events {
				happens(s)
			}
			if tc.after == never {
				if s.progress.goesOn(now.Add(time.Hour), 2) {
					t.Error("the engine goes on")
				}
				return
			}
			if tc.after > 0 && s.progress.goesOn(now.Add(tc.after-time.Second), 2) {
				t.Errorf("the engine goes on before %s", tc.after)
			}
			if !s.progress.goesOn(now.Add(tc.after+time.Second), 2) {
				t.Errorf("the engine does not go on after %s", tc.after)
			}
		})
	}
}
