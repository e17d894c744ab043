package iac

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// decided makes a task that has taken the lock and decided.
func decided(a *Actuator, machine *machinev1beta1.Machine, wanted *desired.State, f *lifecycle.Facts, d lifecycle.Decision) *task {
	t := newTask(a, machine, d.Operation)
	t.facts, t.wanted, t.decision = f, wanted, d
	t.bindModule()
	if d.Operation != runs.Drift {
		t.intent = t.nextIntent(false)
	}
	return t
}

func TestDoubtful(t *testing.T) {
	instance, disk := engine.Ref{Name: "this"}, engine.Ref{Name: "disk"}
	event := func(kind engine.EventKind, ref engine.Ref) engine.Event {
		return engine.Event{Kind: kind, Ref: ref, Address: "thing." + ref.Name, Action: engine.ActionCreate}
	}
	interrupted := errors.Join(&failure.Error{Class: failure.Interrupted}, runs.ErrStopping)
	lost := &record.Intent{Abandoned: "lost"}
	for name, tc := range map[string]struct {
		intent   *record.Intent
		events   []engine.Event
		touched  bool
		saved    bool
		lookedUp bool
		noLookup bool
		outcome  error
		want     bool
	}{
		"a success is not": {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventCompleted, instance)}},
		"an engine that was killed while it applied is":                                         {touched: true, outcome: &failure.Error{Class: failure.Killed}, want: true},
		"an engine that was killed while it planned is not":                                     {outcome: &failure.Error{Class: failure.Killed}},
		"an interrupt before anything is made is not":                                           {touched: true, outcome: interrupted},
		"an interrupt while the instance is made is":                                            {events: []engine.Event{event(engine.EventStarted, instance)}, outcome: interrupted, want: true},
		"a failure to make the instance is: the response may be lost":                           {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventFailed, instance)}, outcome: &failure.Error{Class: failure.Transient}, want: true},
		"a failure after everything is made is not":                                             {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventCompleted, instance)}, outcome: interrupted},
		"a refusal to make it is not: that is a response":                                       {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventFailed, instance)}, outcome: &failure.Error{Class: failure.Quota}},
		"a login that ended while it was made is: the provider may have forgotten what it made": {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventFailed, instance)}, outcome: &failure.Error{Class: failure.Credentials}, want: true},
		"too many requests are as well":                                                         {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventFailed, instance)}, outcome: &failure.Error{Class: failure.Throttled}, want: true},
		"neither is where nobody could look it up":                                              {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventFailed, instance)}, noLookup: true, outcome: &failure.Error{Class: failure.Credentials}},
		"a refusal beside another failure is": {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventStarted, disk)}, want: true,
			outcome: &failure.Error{Class: failure.Quota, Diagnostics: []failure.Diagnostic{{Severity: "error", Summary: "Quota exceeded"}, {Severity: "error", Summary: "unexpected EOF"}}}},
		"two refusals are not": {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventStarted, disk)},
			outcome: &failure.Error{Class: failure.Quota, Diagnostics: []failure.Diagnostic{{Severity: "error", Summary: "Quota exceeded"}, {Severity: "error", Summary: "over quota"}}}},
		"a failure to make something beside it is as well":      {events: []engine.Event{event(engine.EventStarted, instance), event(engine.EventCompleted, instance), event(engine.EventStarted, disk), event(engine.EventFailed, disk)}, outcome: &failure.Error{Class: failure.Unknown}, want: true},
		"a failed lookup leaves what it was to find out":        {intent: lost, outcome: &failure.Error{Class: failure.Transient}, want: true},
		"a lookup that it is too early to believe does as well": {intent: lost, outcome: &undecidedError{}, want: true},
		"a failure after a lookup that has found out is not":    {intent: lost, lookedUp: true, outcome: &failure.Error{Class: failure.Credentials}},
		"an engine that left no readable state is, although it reported the instance as created": {
			events:  []engine.Event{event(engine.EventStarted, instance), event(engine.EventCompleted, instance)},
			touched: true, outcome: &failure.Error{Class: failure.StateNotSaved}, want: true,
		},
		"one whose state was saved in the end is not": {touched: true, saved: true, outcome: &failure.Error{Class: failure.StateNotSaved}},
		"a change that is refused is not":             {outcome: actuators.UnsupportedChange("no")},
	} {
		t.Run(name, func(t *testing.T) {
			used := changedModule(t, "")
			if tc.noLookup {
				used = withoutLookup(t)
			}
			run := &task{intent: tc.intent, touched: tc.touched, saved: tc.saved, lookedUp: tc.lookedUp, run: run{facts: &lifecycle.Facts{}, wanted: &desired.State{Module: used}}}
			if run.intent == nil {
				run.intent = &record.Intent{}
			}
			for _, event := range tc.events {
				run.trackProgress(event)
			}
			if got := run.mayHaveLeft(tc.outcome); got != tc.want {
				t.Errorf("doubtful: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatARunLeavesOfItsIntent(t *testing.T) {
	at := testClock().Now().UTC()
	died := at.Add(-time.Hour)
	lost := record.Record{Intent: &record.Intent{Operation: runs.Create, Run: "lost", Died: died}}
	killed := &failure.Error{Class: failure.Killed}
	refusing := changedModule(t, "", "    nothingMade:\n", "    nothingMade:\n      - 'it is refused'\n")
	making := func(t *task) { t.touched, t.making = true, map[string]bool{"kubectl_manifest.this": true} }
	said := func(summaries ...string) error {
		failed := &failure.Error{Class: failure.Credentials}
		for _, summary := range summaries {
			failed.Diagnostics = append(failed.Diagnostics, failure.Diagnostic{Severity: failure.SeverityError, Summary: summary})
		}
		return failed
	}
	for name, tc := range map[string]struct {
		record  record.Record
		op      runs.Operation
		prepare func(*task)
		outcome error
		want    *record.Intent // without run, since and reason; nil for none
	}{
		"a create that was killed may have made an instance":      {record.Record{}, runs.Create, func(t *task) { t.touched = true }, killed, &record.Intent{Operation: runs.Create, Abandoned: "this run", Died: at}},
		"a create that was not allowed may have":                  {record.Record{}, runs.Create, making, said("Access Denied"), &record.Intent{Operation: runs.Create, Abandoned: "this run", Died: at}},
		"a create that was refused in the module's words has not": {record.Record{}, runs.Create, making, said("it is refused: Access Denied"), nil},
		"a create whose response was lost, of a Machine called like a refusal, may have": {record.Record{}, runs.Create, making,
			said(`m-overquota failed: Post "https://a": EOF`), &record.Intent{Operation: runs.Create, Abandoned: "this run", Died: at}},
		"a create with another error besides may have":                 {record.Record{}, runs.Create, making, said("it is refused", "Access Denied"), &record.Intent{Operation: runs.Create, Abandoned: "this run", Died: at}},
		"a create that failed cleanly has not":                         {record.Record{}, runs.Create, func(t *task) { t.touched = true }, errors.New("no"), nil},
		"a lookup that found nothing too soon keeps the abandoned run": {lost, runs.Create, nil, &undecidedError{}, &record.Intent{Operation: runs.Create, Abandoned: "lost", Died: died, Looked: true}},
		"a lookup that failed keeps it as well":                        {lost, runs.Create, nil, errors.New("no"), &record.Intent{Operation: runs.Create, Abandoned: "lost", Died: died}},
		"a lookup that was killed has made nothing":                    {lost, runs.Create, nil, killed, &record.Intent{Operation: runs.Create, Abandoned: "lost", Died: died}},
		"a create after a lookup that was killed is the abandoned one": {lost, runs.Create, func(t *task) { t.touched, t.lookedUp = true, true }, killed, &record.Intent{Operation: runs.Create, Abandoned: "this run", Died: at}},
		"a destroy that was killed makes nothing":                      {record.Record{}, runs.Destroy, func(t *task) { t.touched = true }, killed, &record.Intent{Operation: runs.Destroy}},
		"an update that was killed makes none either":                  {record.Record{}, runs.Update, func(t *task) { t.touched = true }, killed, &record.Intent{Operation: runs.Update}},
		"a success leaves nothing":                                     {lost, runs.Create, func(t *task) { t.lookedUp = true }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &lifecycle.Facts{Stored: true, Record: tc.record}
			run := decided(&Actuator{clock: testClock()}, &machinev1beta1.Machine{}, &desired.State{Module: refusing}, f,
				lifecycle.Decision{Operation: tc.op, Lookup: tc.record.Intent != nil})
			if tc.prepare != nil {
				tc.prepare(run)
			}
			p := record.NewPatch().SetIntent(*run.intent)
			run.settleIntent(p, tc.outcome)
			var got *record.Intent
			if value := p.MetaPatch["intent"]; value != nil {
				got = &record.Intent{}
				if err := json.Unmarshal([]byte(*value), got); err != nil {
					t.Fatal(err)
				}
				if got.Abandoned == run.id {
					got.Abandoned = "this run"
				}
				got.Run, got.Since, got.Reason = "", time.Time{}, ""
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what is left differs (-want +got):\n%s", diff)
			}
		})
	}
}
