package iac

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const (
	now   = "fingerprint"
	other = "another"
)

func stateWith(instances, tainted int) *state.State {
	return &state.State{Resources: []state.Resource{
		{Mode: state.ModeManaged, Type: "thing", Name: "this", Instances: instances, Tainted: tainted},
	}}
}

func run(operation runs.Operation, phase runs.Phase) *runs.Status {
	return &runs.Status{Operation: operation, Phase: phase}
}

var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	settled = noon.Add(-time.Minute)
)

// begun is the intent of a create that may have made an instance.
func begun() *intent { return &intent{Operation: runs.Create, Run: "lost"} }

// lookedFor is one that a lookup found nothing of, for a run that died at a time.
func lookedFor(died time.Time) *intent {
	return &intent{Operation: runs.Create, Run: "again", Lost: "lost", Died: died, Looked: true}
}

func seen() *witness { return &witness{Run: "lost"} }

// able is what can be done at noon about a Machine whose module has a lookup.
func able(mods ...func(*means)) means {
	m := means{now: noon, fingerprint: now, lookup: true, settle: time.Minute}
	for _, mod := range mods {
		mod(&m)
	}
	return m
}

func blind(m *means) { m.lookup = false }

func TestExists(t *testing.T) {
	for name, tc := range map[string]struct {
		facts *facts
		want  bool
	}{
		"no, without a state":                        {&facts{}, false},
		"no, with a state that is empty":             {&facts{stored: true, state: stateWith(0, 0)}, false},
		"yes, with the instance in the state":        {&facts{stored: true, state: stateWith(1, 0)}, true},
		"no, when the instance is only half made":    {&facts{stored: true, state: stateWith(1, 1)}, false},
		"no, when a drift check found it gone":       {&facts{stored: true, state: stateWith(1, 0), record: record{Check: &check{Verdict: verdictMissing}}}, false},
		"yes, when a drift check found it changed":   {&facts{stored: true, state: stateWith(1, 0), record: record{Check: &check{Verdict: verdictChanged}}}, true},
		"yes, when its run has not settled":          {&facts{stored: true, state: stateWith(1, 0), record: record{Intent: begun()}}, true},
		"no, when only something beside it was made": {&facts{stored: true, state: &state.State{Resources: []state.Resource{{Mode: state.ModeManaged, Name: "disk", Instances: 1}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.facts.exists(); got != tc.want {
				t.Errorf("exists is %t, want %t", got, tc.want)
			}
		})
	}
}

type decisionCase struct {
	facts *facts
	means means
	want  decision
}

// decides compares all but the reason, which there must be where something is begun.
func decides(t *testing.T, asked runs.Operation, cases map[string]decisionCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decide(asked, tc.facts, tc.means)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(decision{}), cmpopts.IgnoreFields(decision{}, "reason")); diff != "" {
				t.Error(diff)
			}
			if (got.action == start || got.action == later) && got.reason == "" {
				t.Error("the decision has no reason")
			}
		})
	}
}

func starting(operation runs.Operation) decision {
	return decision{action: start, operation: operation}
}

func lookingUp(operation runs.Operation) decision {
	return decision{action: start, operation: operation, lookup: true}
}

func TestDecideCreate(t *testing.T) {
	empty := func(i *intent) *facts { return &facts{stored: true, state: stateWith(0, 0), record: record{Intent: i}} }
	decides(t, runs.Create, map[string]decisionCase{
		"a Machine that nothing is known of is created":                    {&facts{}, able(), starting(runs.Create)},
		"a create under way is waited for":                                 {&facts{run: run(runs.Create, runs.Running)}, able(), decision{action: await}},
		"a create that waits is waited for":                                {&facts{run: run(runs.Create, runs.Queued)}, able(), decision{action: await}},
		"an intent without an instance is looked up":                       {empty(begun()), able(), lookingUp(runs.Create)},
		"an intent that cannot be looked up needs a person":                {empty(begun()), able(blind), decision{action: unresolved, operation: runs.Create}},
		"a lookup that found nothing too soon is waited with":              {empty(lookedFor(settled.Add(time.Second))), able(), decision{action: later, operation: runs.Create, until: noon.Add(time.Second)}},
		"a lookup that found nothing is made again when it counts":         {empty(lookedFor(settled)), able(), lookingUp(runs.Create)},
		"what a person says of the lost run counts":                        {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: begun()}, confirmed: "lost"}, able(blind), starting(runs.Create)},
		"what a person says of another run does not":                       {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: begun()}, confirmed: "earlier"}, able(blind), decision{action: unresolved, operation: runs.Create}},
		"an intent with its instance in the state needs no lookup":         {&facts{stored: true, state: stateWith(1, 0), record: record{Intent: begun()}}, able(), decision{action: done}},
		"a Machine that has a witness and no state is looked up":           {&facts{witness: seen()}, able(), lookingUp(runs.Create)},
		"and needs a person where that cannot be":                          {&facts{witness: seen()}, able(blind), decision{action: unresolved, operation: runs.Create}},
		"an instance that others made is left alone":                       {&facts{provisioned: true}, able(), decision{action: foreign}},
		"a create that failed is submitted again":                          {&facts{run: run(runs.Create, runs.Failed)}, able(), starting(runs.Create)},
		"a half made instance is created again, with its plan read":        {&facts{stored: true, state: stateWith(1, 1)}, able(), starting(runs.Create)},
		"an empty state that settled is created from without any lookup":   {&facts{stored: true, witness: seen(), state: stateWith(0, 0)}, able(), starting(runs.Create)},
		"a failed destroy does not stop a create of a Machine that stayed": {&facts{run: run(runs.Destroy, runs.Failed)}, able(), starting(runs.Create)},
	})
}

func TestDecideUpdate(t *testing.T) {
	asIs, changed := record{Fingerprint: now}, record{Fingerprint: other}
	with := func(r record) *facts { return &facts{stored: true, state: stateWith(1, 0), record: r} }
	under := func(r record, s *runs.Status) *facts {
		f := with(r)
		f.run = s
		return f
	}
	due := func(u upkeep) means { return able(func(m *means) { m.due = u }) }
	decides(t, runs.Update, map[string]decisionCase{
		"a settled Machine costs nothing":                            {with(asIs), able(), decision{action: done}},
		"a settled Machine is checked when it is due":                {with(asIs), due(upkeep{check: true}), starting(runs.Drift)},
		"one that drifted is repaired before it is checked again":    {with(asIs), due(upkeep{check: true, repair: true}), decision{action: start, operation: runs.Update, repair: true}},
		"a second instance is looked for when it is due":             {with(asIs), due(upkeep{check: true, second: true}), lookingUp(runs.Drift)},
		"a change that is asked for goes before a repair":            {with(changed), due(upkeep{repair: true}), starting(runs.Update)},
		"a drift check under way disturbs nobody":                    {under(asIs, run(runs.Drift, runs.Running)), due(upkeep{check: true}), decision{action: done}},
		"an edit during a drift check is not done yet":               {under(changed, run(runs.Drift, runs.Running)), able(), decision{action: await}},
		"an edit takes the place of a drift check that waits":        {under(changed, run(runs.Drift, runs.Queued)), able(), starting(runs.Update)},
		"other inputs are brought about":                             {with(changed), able(), starting(runs.Update)},
		"an intent is settled even when the inputs are the same":     {with(record{Fingerprint: now, Intent: begun()}), able(), starting(runs.Update)},
		"a repair that waits is not done yet":                        {under(asIs, run(runs.Update, runs.Queued)), due(upkeep{repair: true}), decision{action: await}},
		"a repair under way is not done yet":                         {under(asIs, run(runs.Update, runs.Running)), due(upkeep{repair: true}), decision{action: await}},
		"an update under way is waited for":                          {under(changed, run(runs.Update, runs.Running)), able(), decision{action: await}},
		"a create that has not settled is waited for":                {under(record{Intent: begun()}, run(runs.Create, runs.Running)), able(), decision{action: await}},
		"a refused change is not planned again":                      {with(record{Fingerprint: other, Refusal: &refusal{Fingerprint: now}}), able(), decision{action: refuse}},
		"a refusal of other inputs does not stop an update":          {with(record{Fingerprint: other, Refusal: &refusal{Fingerprint: other}}), able(), starting(runs.Update)},
		"a refused change that is taken back is settled":             {with(record{Fingerprint: now, Refusal: &refusal{Fingerprint: other}}), able(), decision{action: done}},
		"a failure of the create does not stop the update behind it": {under(record{Intent: begun()}, run(runs.Create, runs.Failed)), able(), starting(runs.Update)},
		"an instance whose state is gone is looked up":               {&facts{provisioned: true, witness: seen()}, able(), lookingUp(runs.Update)},
		"an instance that others made is left alone":                 {&facts{provisioned: true}, able(), decision{action: foreign}},
	})
}

func TestDecideDelete(t *testing.T) {
	gone := func(at time.Time) record { return record{Check: &check{At: at, Verdict: verdictMissing}} }
	cut := &intent{Operation: runs.Destroy, Run: "cut"}
	decides(t, runs.Destroy, map[string]decisionCase{
		"a Machine that nothing was made for may go":                 {&facts{}, able(), decision{action: done}},
		"an instance is destroyed":                                   {&facts{stored: true, state: stateWith(1, 0), provisioned: true}, able(), starting(runs.Destroy)},
		"an empty state is removed":                                  {&facts{stored: true, state: stateWith(0, 0)}, able(), starting(runs.Destroy)},
		"an instance that may have been made is looked up":           {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: begun()}}, able(), lookingUp(runs.Destroy)},
		"and needs a person where that cannot be":                    {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: begun()}}, able(blind), decision{action: unresolved, operation: runs.Destroy}},
		"who may say that there is none":                             {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: begun()}, confirmed: "lost"}, able(blind), starting(runs.Destroy)},
		"a lookup that found nothing too soon is waited with":        {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: lookedFor(noon)}}, able(), decision{action: later, operation: runs.Destroy, until: noon.Add(time.Minute)}},
		"a running create is waited for":                             {&facts{run: run(runs.Create, runs.Running)}, able(), decision{action: await}},
		"a destroy that waits is waited for":                         {&facts{stored: true, run: run(runs.Destroy, runs.Queued)}, able(), decision{action: await}},
		"a destroy that succeeded is the end":                        {&facts{provisioned: true, run: run(runs.Destroy, runs.Succeeded)}, able(), decision{action: done}},
		"so is a witness of one":                                     {&facts{provisioned: true, witness: &witness{Destroyed: &noon}}, able(blind), decision{action: done}},
		"a witness of one does not cover what the state has":         {&facts{stored: true, state: stateWith(1, 0), witness: &witness{Destroyed: &noon}}, able(), starting(runs.Destroy)},
		"a state that is gone is looked up":                          {&facts{provisioned: true, witness: seen()}, able(), lookingUp(runs.Destroy)},
		"a state that is gone and cannot be looked up is an error":   {&facts{provisioned: true, witness: seen()}, able(blind), decision{action: unresolved, operation: runs.Destroy}},
		"an instance that others made is left alone":                 {&facts{provisioned: true}, able(), decision{action: foreign}},
		"a failed create does not stop the destroy":                  {&facts{stored: true, state: stateWith(1, 0), run: run(runs.Create, runs.Failed)}, able(), starting(runs.Destroy)},
		"an instance that was not found is looked for later":         {&facts{stored: true, state: stateWith(1, 0), record: gone(settled.Add(time.Second))}, able(), decision{action: later, operation: runs.Destroy, until: noon.Add(time.Second)}},
		"however long late requests may take in that place":          {&facts{stored: true, state: stateWith(1, 0), record: gone(settled)}, able(func(m *means) { m.settle = time.Hour }), starting(runs.Destroy)},
		"and then destroyed by its state":                            {&facts{stored: true, state: stateWith(1, 0), record: gone(settled)}, able(), starting(runs.Destroy)},
		"a destroy that was cut short looks for what it dropped":     {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: cut}}, able(), lookingUp(runs.Destroy)},
		"but needs nobody to say so: it can have made nothing":       {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: cut}}, able(blind), starting(runs.Destroy)},
		"a destroy that was cut short with the instance in place is": {&facts{stored: true, state: stateWith(1, 0), record: record{Intent: cut}}, able(), starting(runs.Destroy)},
	})
}

func TestOvertaken(t *testing.T) {
	for name, tc := range map[string]struct {
		asked runs.Operation
		facts *facts
		want  action
	}{
		"a create of a Machine that is there goes on":             {runs.Create, &facts{}, start},
		"a create of a Machine that is deleted does not":          {runs.Create, &facts{deleting: true}, done},
		"a create of a Machine that is gone does not":             {runs.Create, &facts{gone: true}, done},
		"a drift check of a Machine that is deleted does not":     {runs.Drift, &facts{deleting: true}, done},
		"a destroy of a Machine that is deleted goes on":          {runs.Destroy, &facts{deleting: true}, start},
		"a destroy of a Machine that is not deleted does not":     {runs.Destroy, &facts{}, done},
		"a destroy that was begun is finished without a Machine":  {runs.Destroy, &facts{gone: true, record: record{Intent: &intent{Operation: runs.Destroy}}}, start},
		"a destroy that was never begun needs a Machine":          {runs.Destroy, &facts{gone: true}, done},
		"a create that was begun is not destroyed with a Machine": {runs.Destroy, &facts{gone: true, record: record{Intent: begun()}}, done},
	} {
		if got := overtaken(tc.asked, tc.facts); got.action != tc.want || got.action == done && got.reason == "" {
			t.Errorf("%s: got %+v, want action %d with its reason", name, got, tc.want)
		}
	}
}

func TestDriftChecksAreSpread(t *testing.T) {
	spread := map[time.Duration]bool{}
	for _, uid := range []string{"a", "b", "c", "d", "e", "f"} {
		after := driftAfter(time.Hour, uid)
		if after < 54*time.Minute || after > 66*time.Minute {
			t.Errorf("the check of %s is due after %s, want an hour, a tenth more or less", uid, after)
		}
		if after != driftAfter(time.Hour, uid) {
			t.Error("the same Machine has two intervals")
		}
		spread[after] = true
	}
	if len(spread) < 4 {
		t.Errorf("six Machines share %d intervals", len(spread))
	}
}
