package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	now   = "fingerprint"
	other = "another"
)

func run(operation runs.Operation, phase runs.Phase) *runs.Status {
	return &runs.Status{Operation: operation, Phase: phase}
}

var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	settled = noon.Add(-time.Minute)
)

// lookedFor is one that a lookup found nothing of, for a run that died at a time.
func lookedFor(died time.Time) *record.Intent {
	return &record.Intent{Operation: runs.Create, Run: "again", Abandoned: "lost", Died: died, Looked: true}
}

// killedLookup is a Machine whose create was killed after it had looked for an earlier run's instance.
func killedLookup(confirmed string) *Facts {
	return &Facts{Stored: true, State: stateWith(0, 0), Lock: &state.Lock{Run: "later"}, Confirmed: confirmed,
		Record: record.Record{Intent: &record.Intent{Operation: runs.Create, Run: "later", Abandoned: "lost"}}}
}

func seen() *record.Witness { return &record.Witness{Run: "lost"} }

// able is what can be done at noon about a Machine whose module has a lookup.
func able(mods ...func(*Target)) Target {
	m := Target{Now: noon, Fingerprint: now, Lookup: true, Settle: time.Minute}
	for _, mod := range mods {
		mod(&m)
	}
	return m
}

func blind(m *Target) { m.Lookup = false }

type decisionCase struct {
	facts *Facts
	means Target
	want  Decision
}

// decides compares all but the reason, which there must be where something is begun.
func decides(t *testing.T, asked runs.Operation, cases map[string]decisionCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Decide(asked, tc.facts, tc.means)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Decision{}, "Reason")); diff != "" {
				t.Error(diff)
			}
			if (got.Action == ActionStart || got.Action == ActionRequeueAfter) && got.Reason == "" {
				t.Error("the decision has no reason")
			}
		})
	}
}

func starting(operation runs.Operation) Decision {
	return Decision{Action: ActionStart, Operation: operation}
}

func lookingUp(operation runs.Operation) Decision {
	return Decision{Action: ActionStart, Operation: operation, Lookup: true}
}

// halfMade is a Machine whose instance is tainted.
func halfMade(mod func(*Facts)) *Facts {
	f := &Facts{Stored: true, Witness: seen(), State: stateWith(1, 1)}
	if mod != nil {
		mod(f)
	}
	return f
}

func notFoundNow(f *Facts) {
	f.Record.Check = &record.DriftCheck{At: noon, Result: record.DriftMissing}
}

func TestAnInstanceIsHalfMadeOnlyWhereTheMachineNeverHadOne(t *testing.T) {
	for name, tc := range map[string]struct {
		mod  func(*Facts)
		want bool
	}{
		"a tainted one":                {nil, true},
		"a whole one":                  {func(f *Facts) { f.State = stateWith(1, 0) }, false},
		"none":                         {func(f *Facts) { f.State = stateWith(0, 0) }, false},
		"one that the Machine has had": {func(f *Facts) { f.Provisioned = true }, false},
		"one that was applied before":  {func(f *Facts) { f.Record.Fingerprint = other }, false},
		"one that was adopted":         {func(f *Facts) { f.Witness.Adopted = true }, false},
		"one of Pulumi's":              {func(f *Facts) { f.State.Format = statefile.FormatPulumi }, false},
	} {
		if got := halfMade(tc.mod).HalfMade(); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestDecideCreate(t *testing.T) {
	empty := func(i *record.Intent) *Facts {
		return &Facts{Stored: true, State: stateWith(0, 0), Record: record.Record{Intent: i}}
	}
	decides(t, runs.Create, map[string]decisionCase{
		"a Machine that nothing is known of is created":                    {&Facts{}, able(), starting(runs.Create)},
		"a create under way is waited for":                                 {&Facts{Run: run(runs.Create, runs.Running)}, able(), Decision{Action: ActionInProgress}},
		"a create that waits is waited for":                                {&Facts{Run: run(runs.Create, runs.Queued)}, able(), Decision{Action: ActionInProgress}},
		"an intent without an instance is looked up":                       {empty(begun()), able(), lookingUp(runs.Create)},
		"an intent that cannot be looked up needs a person":                {empty(begun()), able(blind), Decision{Action: ActionUnresolved, Operation: runs.Create}},
		"a lookup that found nothing too soon is waited with":              {empty(lookedFor(settled.Add(time.Second))), able(), Decision{Action: ActionRequeueAfter, Operation: runs.Create, Until: noon.Add(time.Second)}},
		"a lookup that found nothing is made again when it counts":         {empty(lookedFor(settled)), able(), lookingUp(runs.Create)},
		"what a person says of the abandoned run counts":                   {&Facts{Stored: true, State: stateWith(0, 0), Record: record.Record{Intent: begun()}, Confirmed: "lost"}, able(blind), starting(runs.Create)},
		"nor of the run that a killed one looked for":                      {killedLookup("lost"), able(), lookingUp(runs.Create)},
		"what a person says of the killed one does":                        {killedLookup("later"), able(), starting(runs.Create)},
		"what a person says of another run does not":                       {&Facts{Stored: true, State: stateWith(0, 0), Record: record.Record{Intent: begun()}, Confirmed: "earlier"}, able(blind), Decision{Action: ActionUnresolved, Operation: runs.Create}},
		"an intent with its instance in the state needs no lookup":         {&Facts{Stored: true, State: stateWith(1, 0), Record: record.Record{Intent: begun()}}, able(), Decision{Action: ActionDone}},
		"a Machine that has a witness and no state is looked up":           {&Facts{Witness: seen()}, able(), lookingUp(runs.Create)},
		"and needs a person where that cannot be":                          {&Facts{Witness: seen()}, able(blind), Decision{Action: ActionUnresolved, Operation: runs.Create}},
		"an instance that others made is left alone":                       {&Facts{Provisioned: true}, able(), Decision{Action: ActionForeign}},
		"a create that failed is submitted again":                          {&Facts{Run: run(runs.Create, runs.Failed)}, able(), starting(runs.Create)},
		"a half-made instance is gone on with":                             {halfMade(nil), able(), starting(runs.Create)},
		"and needs neither a lookup nor a person":                          {halfMade(func(f *Facts) { f.Record.Intent = begun() }), able(blind), starting(runs.Create)},
		"nor does the end of its run have to be waited for":                {halfMade(func(f *Facts) { f.Record.Intent = lookedFor(noon) }), able(), starting(runs.Create)},
		"one that is not found is looked for once more":                    {halfMade(notFoundNow), able(), Decision{Action: ActionRequeueAfter, Operation: runs.Create, Until: noon.Add(time.Minute)}},
		"an empty state that settled is created from without any lookup":   {&Facts{Stored: true, Witness: seen(), State: stateWith(0, 0)}, able(), starting(runs.Create)},
		"a failed destroy does not stop a create of a Machine that stayed": {&Facts{Run: run(runs.Destroy, runs.Failed)}, able(), starting(runs.Create)},
	})
}

func TestDecideUpdate(t *testing.T) {
	asIs, changed := record.Record{Fingerprint: now}, record.Record{Fingerprint: other}
	with := func(r record.Record) *Facts { return &Facts{Stored: true, State: stateWith(1, 0), Record: r} }
	under := func(r record.Record, s *runs.Status) *Facts {
		f := with(r)
		f.Run = s
		return f
	}
	due := func(u Due) Target { return able(func(m *Target) { m.Due = u }) }
	decides(t, runs.Update, map[string]decisionCase{
		"a settled Machine costs nothing":                            {with(asIs), able(), Decision{Action: ActionDone}},
		"a settled Machine is checked when it is due":                {with(asIs), due(Due{Check: true}), starting(runs.Drift)},
		"one that drifted is repaired before it is checked again":    {with(asIs), due(Due{Check: true, Repair: true}), Decision{Action: ActionStart, Operation: runs.Update, Repair: true}},
		"a second instance is looked for when it is due":             {with(asIs), due(Due{Check: true, SecondLook: true}), lookingUp(runs.Drift)},
		"a change that is asked for goes before a repair":            {with(changed), due(Due{Repair: true}), starting(runs.Update)},
		"a drift check under way disturbs nobody":                    {under(asIs, run(runs.Drift, runs.Running)), due(Due{Check: true}), Decision{Action: ActionDone}},
		"an edit during a drift check is not done yet":               {under(changed, run(runs.Drift, runs.Running)), able(), Decision{Action: ActionInProgress}},
		"an edit takes the place of a drift check that waits":        {under(changed, run(runs.Drift, runs.Queued)), able(), starting(runs.Update)},
		"other inputs are brought about":                             {with(changed), able(), starting(runs.Update)},
		"an intent is settled even when the inputs are the same":     {with(record.Record{Fingerprint: now, Intent: begun()}), able(), starting(runs.Update)},
		"a repair that waits is not done yet":                        {under(asIs, run(runs.Update, runs.Queued)), due(Due{Repair: true}), Decision{Action: ActionInProgress}},
		"a repair under way is not done yet":                         {under(asIs, run(runs.Update, runs.Running)), due(Due{Repair: true}), Decision{Action: ActionInProgress}},
		"an update under way is waited for":                          {under(changed, run(runs.Update, runs.Running)), able(), Decision{Action: ActionInProgress}},
		"a create that has not settled is waited for":                {under(record.Record{Intent: begun()}, run(runs.Create, runs.Running)), able(), Decision{Action: ActionInProgress}},
		"a refused change is not planned again":                      {with(record.Record{Fingerprint: other, Refusal: &record.Refusal{Fingerprint: now}}), able(), Decision{Action: ActionRefuse}},
		"a refused change stays refused while a check is under way":  {under(record.Record{Fingerprint: other, Refusal: &record.Refusal{Fingerprint: now}}, run(runs.Drift, runs.Running)), able(), Decision{Action: ActionRefuse}},
		"a refusal of other inputs does not stop an update":          {with(record.Record{Fingerprint: other, Refusal: &record.Refusal{Fingerprint: other}}), able(), starting(runs.Update)},
		"a refused change that is taken back is settled":             {with(record.Record{Fingerprint: now, Refusal: &record.Refusal{Fingerprint: other}}), able(), Decision{Action: ActionDone}},
		"a failure of the create does not stop the update behind it": {under(record.Record{Intent: begun()}, run(runs.Create, runs.Failed)), able(), starting(runs.Update)},
		"an instance whose state is gone is looked up":               {&Facts{Provisioned: true, Witness: seen()}, able(), lookingUp(runs.Update)},
		"an instance that others made is left alone":                 {&Facts{Provisioned: true}, able(), Decision{Action: ActionForeign}},
	})
}

// Whatever keeps an update from being made, what is due for the instance is done beside it.
func TestDecideBeside(t *testing.T) {
	refused := record.Record{Fingerprint: other, Refusal: &record.Refusal{Fingerprint: now}}
	with := func(mods ...func(*Facts)) *Facts {
		f := &Facts{Stored: true, State: stateWith(1, 0), Record: refused}
		for _, mod := range mods {
			mod(f)
		}
		return f
	}
	due := func(u Due) Target { return able(func(m *Target) { m.Due = u }) }
	beside := func(d Decision) Decision {
		d.Beside = true
		return d
	}
	check, all := due(Due{Check: true}), due(Due{Check: true, Repair: true, SecondLook: true, Look: true})
	nothing := Decision{Action: ActionDone}
	for name, tc := range map[string]decisionCase{
		"a refused change, with nothing due":                        {with(), due(Due{}), beside(nothing)},
		"a refused change, with a drift check due":                  {with(), check, beside(starting(runs.Drift))},
		"a refused change, with a look due":                         {with(), due(Due{Look: true}), beside(Decision{Action: ActionLook})},
		"a refused change, with a second instance to be looked for": {with(), due(Due{SecondLook: true}), beside(lookingUp(runs.Drift))},
		"a refused change of an instance that has drifted":          {with(), all, beside(Decision{Action: ActionStart, Operation: runs.Update, Repair: true})},
		"a change that cannot be rendered, or waits for a Secret":   {with(func(f *Facts) { f.Record = record.Record{Fingerprint: other} }), check, beside(starting(runs.Drift))},
		"a change to a module that was refused":                     {with(func(f *Facts) { f.Record = record.Record{Fingerprint: other, ModuleRefusal: &record.Refusal{}} }), check, beside(starting(runs.Drift))},
		"an update that has failed and pauses":                      {with(func(f *Facts) { f.Run = run(runs.Update, runs.Failed) }), check, beside(starting(runs.Drift))},
		"an update that has failed and pauses, and drift": {
			with(func(f *Facts) { f.Run = run(runs.Update, runs.Failed) }),
			able(func(m *Target) { m.Due, m.Trying = Due{Check: true, Repair: true}, true }), Decision{Action: ActionStart, Operation: runs.Drift, Beside: true, Between: true},
		},
		"a refused change whose run is remembered, and drift": {
			with(func(f *Facts) { f.Run = run(runs.Update, runs.Failed) }), due(Due{Repair: true}),
			beside(Decision{Action: ActionStart, Operation: runs.Update, Repair: true}),
		},
		"an update that was cut short":                       {with(func(f *Facts) { f.Record.Intent = &record.Intent{Operation: runs.Update} }), check, beside(starting(runs.Drift))},
		"an update that was cut short, and drift":            {with(func(f *Facts) { f.Record.Intent = &record.Intent{Operation: runs.Update} }), due(Due{Repair: true, Check: true}), beside(starting(runs.Drift))},
		"nothing while a run is queued":                      {with(func(f *Facts) { f.Run = run(runs.Update, runs.Queued) }), all, nothing},
		"nothing while the check runs":                       {with(func(f *Facts) { f.Run = run(runs.Drift, runs.Running) }), all, nothing},
		"nothing about an instance that is known to be gone": {with(func(f *Facts) { f.Record.Check = &record.DriftCheck{Result: record.DriftMissing} }), all, nothing},
		"nothing about one that is half made":                {with(func(f *Facts) { f.State = stateWith(1, 1) }), all, nothing},
		"nothing about one whose Machine is being deleted":   {with(func(f *Facts) { f.Deleting = true }), all, nothing},
		"nothing about one that is released":                 {with(func(f *Facts) { f.Adoption.Adoption = AdoptionRelease }), all, nothing},
		"nothing about one of which there is no state":       {&Facts{Provisioned: true}, all, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			got := DecideBeside(tc.facts, tc.means)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Decision{}, "Reason")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecideDelete(t *testing.T) {
	gone := func(at time.Time) record.Record {
		return record.Record{Check: &record.DriftCheck{At: at, Result: record.DriftMissing}}
	}
	cut := &record.Intent{Operation: runs.Destroy, Run: "cut"}
	decides(t, runs.Destroy, map[string]decisionCase{
		"a half-made instance is destroyed without a lookup":         {halfMade(func(f *Facts) { f.Record.Intent = begun() }), able(), starting(runs.Destroy)},
		"one that is not found is looked for once more":              {halfMade(notFoundNow), able(), Decision{Action: ActionRequeueAfter, Operation: runs.Destroy, Until: noon.Add(time.Minute)}},
		"a Machine that nothing was made for may go":                 {&Facts{}, able(), Decision{Action: ActionDone}},
		"an instance is destroyed":                                   {&Facts{Stored: true, State: stateWith(1, 0), Provisioned: true}, able(), starting(runs.Destroy)},
		"an empty state is removed":                                  {&Facts{Stored: true, State: stateWith(0, 0)}, able(), starting(runs.Destroy)},
		"an instance that may have been made is looked up":           {&Facts{Stored: true, State: stateWith(0, 0), Record: record.Record{Intent: begun()}}, able(), lookingUp(runs.Destroy)},
		"and needs a person where that cannot be":                    {&Facts{Stored: true, State: stateWith(0, 0), Record: record.Record{Intent: begun()}}, able(blind), Decision{Action: ActionUnresolved, Operation: runs.Destroy}},
		"who may say that there is none":                             {&Facts{Stored: true, State: stateWith(0, 0), Record: record.Record{Intent: begun()}, Confirmed: "lost"}, able(blind), starting(runs.Destroy)},
		"a lookup that found nothing too soon is waited with":        {&Facts{Stored: true, State: stateWith(0, 0), Record: record.Record{Intent: lookedFor(noon)}}, able(), Decision{Action: ActionRequeueAfter, Operation: runs.Destroy, Until: noon.Add(time.Minute)}},
		"a running create is waited for":                             {&Facts{Run: run(runs.Create, runs.Running)}, able(), Decision{Action: ActionInProgress}},
		"a destroy that waits is waited for":                         {&Facts{Stored: true, Run: run(runs.Destroy, runs.Queued)}, able(), Decision{Action: ActionInProgress}},
		"a destroy that succeeded is the end":                        {&Facts{Provisioned: true, Run: run(runs.Destroy, runs.Succeeded)}, able(), Decision{Action: ActionDone}},
		"so is a witness of one":                                     {&Facts{Provisioned: true, Witness: &record.Witness{Destroyed: &noon}}, able(blind), Decision{Action: ActionDone}},
		"a state that is left after one is deleted without a lookup": {&Facts{Stored: true, State: stateWith(0, 0), Witness: &record.Witness{Destroyed: &noon}, Record: record.Record{Intent: &record.Intent{Operation: runs.Destroy, Run: "r"}}}, able(), starting(runs.Destroy)},
		"a witness of one does not cover what the state has":         {&Facts{Stored: true, State: stateWith(1, 0), Witness: &record.Witness{Destroyed: &noon}}, able(), starting(runs.Destroy)},
		"a state that is gone is looked up":                          {&Facts{Provisioned: true, Witness: seen()}, able(), lookingUp(runs.Destroy)},
		"a state that is gone and cannot be looked up is an error":   {&Facts{Provisioned: true, Witness: seen()}, able(blind), Decision{Action: ActionUnresolved, Operation: runs.Destroy}},
		"an instance that others made is left alone":                 {&Facts{Provisioned: true}, able(), Decision{Action: ActionForeign}},
		"a failed create does not stop the destroy":                  {&Facts{Stored: true, State: stateWith(1, 0), Run: run(runs.Create, runs.Failed)}, able(), starting(runs.Destroy)},
		"an instance that was not found is looked for later":         {&Facts{Stored: true, State: stateWith(1, 0), Record: gone(settled.Add(time.Second))}, able(), Decision{Action: ActionRequeueAfter, Operation: runs.Destroy, Until: noon.Add(time.Second)}},
		"however long late requests may take in that place":          {&Facts{Stored: true, State: stateWith(1, 0), Record: gone(settled)}, able(func(m *Target) { m.Settle = time.Hour }), starting(runs.Destroy)},
		"and then destroyed by its state":                            {&Facts{Stored: true, State: stateWith(1, 0), Record: gone(settled)}, able(), starting(runs.Destroy)},
		"a destroy that was cut short looks for what it dropped":     {&Facts{Stored: true, State: stateWith(0, 0), Record: record.Record{Intent: cut}}, able(), lookingUp(runs.Destroy)},
		"but needs nobody to say so: it can have made nothing":       {&Facts{Stored: true, State: stateWith(0, 0), Record: record.Record{Intent: cut}}, able(blind), starting(runs.Destroy)},
		"a destroy that was cut short with the instance in place is": {&Facts{Stored: true, State: stateWith(1, 0), Record: record.Record{Intent: cut}}, able(), starting(runs.Destroy)},
	})
}

func TestStale(t *testing.T) {
	for name, tc := range map[string]struct {
		asked runs.Operation
		facts *Facts
		want  Action
	}{
		"a create of a Machine that is there goes on":             {runs.Create, &Facts{}, ActionStart},
		"a create of a Machine that is deleted does not":          {runs.Create, &Facts{Deleting: true}, ActionDone},
		"a create of a Machine that is gone does not":             {runs.Create, &Facts{Gone: true}, ActionDone},
		"a drift check of a Machine that is deleted does not":     {runs.Drift, &Facts{Deleting: true}, ActionDone},
		"a destroy of a Machine that is deleted goes on":          {runs.Destroy, &Facts{Deleting: true}, ActionStart},
		"a destroy of a Machine that is not deleted does not":     {runs.Destroy, &Facts{}, ActionDone},
		"a destroy that was begun is finished without a Machine":  {runs.Destroy, &Facts{Gone: true, Record: record.Record{Intent: &record.Intent{Operation: runs.Destroy}}}, ActionStart},
		"a destroy that was never begun needs a Machine":          {runs.Destroy, &Facts{Gone: true}, ActionDone},
		"one that a person requested is begun without a Machine":  {runs.Destroy, &Facts{Gone: true, Orphan: record.Orphan{Action: record.OrphanDestroy}}, ActionStart},
		"and is begun although a create was abandoned":            {runs.Destroy, &Facts{Gone: true, Orphan: record.Orphan{Action: record.OrphanDestroy}, Record: record.Record{Intent: begun()}}, ActionStart},
		"one that a person requested waits while there is one":    {runs.Destroy, &Facts{Orphan: record.Orphan{Action: record.OrphanDestroy}}, ActionDone},
		"no create is begun for it":                               {runs.Create, &Facts{Gone: true, Orphan: record.Orphan{Action: record.OrphanDestroy}}, ActionDone},
		"another action is no destroy":                            {runs.Destroy, &Facts{Gone: true, Orphan: record.Orphan{Action: "Delete"}}, ActionDone},
		"a mark is no decision":                                   {runs.Destroy, &Facts{Gone: true, Orphan: record.Orphan{Mark: &record.OrphanMark{Since: noon}}}, ActionDone},
		"what the policy decided is begun without a Machine":      {runs.Destroy, &Facts{Gone: true, Orphan: record.Orphan{Mark: &record.OrphanMark{Since: settled, Destroy: noon}}}, ActionStart},
		"a create that was begun is not destroyed with a Machine": {runs.Destroy, &Facts{Gone: true, Record: record.Record{Intent: begun()}}, ActionDone},
	} {
		if got := Stale(tc.asked, tc.facts); got.Action != tc.want || got.Action == ActionDone && got.Reason == "" {
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

func TestWhatMayShareAProcess(t *testing.T) {
	empty := &Facts{}
	made := &Facts{State: &statefile.State{Resources: []statefile.Resource{{Mode: statefile.ModeManaged, Type: "thing", Name: "this", Instances: 1}}}}
	drifted := &Facts{State: made.State, Record: record.Record{Check: &record.DriftCheck{Result: record.DriftChanged}}}
	for name, tc := range map[string]struct {
		d        Decision
		f        *Facts
		noLookup bool
		want     bool
	}{
		"a first create":                            {d: Decision{Operation: runs.Create}, f: empty, want: true},
		"one of a module without a lookup":          {d: Decision{Operation: runs.Create}, f: empty, noLookup: true},
		"a create after one that made something":    {d: Decision{Operation: runs.Create}, f: made},
		"a create that looks for an instance":       {d: Decision{Operation: runs.Create, Lookup: true}, f: empty},
		"a destroy":                                 {d: Decision{Operation: runs.Destroy}, f: made, noLookup: true, want: true},
		"a destroy that looks for an instance":      {d: Decision{Operation: runs.Destroy, Lookup: true}, f: made},
		"a destroy of nothing":                      {d: Decision{Operation: runs.Destroy}, f: empty},
		"a state that is forgotten":                 {d: Decision{Operation: runs.Destroy, Release: true}, f: made},
		"an update":                                 {d: Decision{Operation: runs.Update}, f: made},
		"an adoption":                               {d: Decision{Operation: runs.Update, Adopt: true}, f: empty},
		"a drift check":                             {d: Decision{Operation: runs.Drift}, f: made, noLookup: true, want: true},
		"one of an instance that has drifted":       {d: Decision{Operation: runs.Drift}, f: drifted},
		"a look at an instance that has drifted":    {d: Decision{Operation: runs.Drift, Look: true}, f: drifted, want: true},
		"a drift check that looks for a second one": {d: Decision{Operation: runs.Drift, Lookup: true}, f: made},
	} {
		if got := tc.d.Batched(tc.f, !tc.noLookup); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
