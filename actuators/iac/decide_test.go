package iac

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func begun() *intent { return &intent{Operation: runs.Create} }

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

func TestDecideCreate(t *testing.T) {
	create := decision{action: start, operation: runs.Create}
	lookup := decision{action: start, operation: runs.Create, lookup: true}
	for name, tc := range map[string]struct {
		facts     *facts
		canLookUp bool
		want      decision
	}{
		"a Machine that nothing is known of is created":                    {&facts{}, true, create},
		"a create under way is waited for":                                 {&facts{run: run(runs.Create, runs.Running)}, true, decision{action: await}},
		"a create that waits is waited for":                                {&facts{run: run(runs.Create, runs.Queued)}, true, decision{action: await}},
		"an intent without an instance is looked up":                       {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: begun()}}, true, lookup},
		"an intent is not looked up where the module cannot":               {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: begun()}}, false, create},
		"an intent with its instance in the state needs no lookup":         {&facts{stored: true, state: stateWith(1, 0), record: record{Intent: begun()}}, true, decision{action: done}},
		"a provisioned Machine whose state is gone is looked up":           {&facts{provisioned: true}, true, lookup},
		"a create that failed is submitted again":                          {&facts{run: run(runs.Create, runs.Failed)}, true, create},
		"a half made instance is created again, with its plan read":        {&facts{stored: true, state: stateWith(1, 1)}, true, create},
		"an empty state that settled is created from without any lookup":   {&facts{stored: true, state: stateWith(0, 0)}, true, create},
		"a failed destroy does not stop a create of a Machine that stayed": {&facts{run: run(runs.Destroy, runs.Failed)}, true, create},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decideCreate(tc.facts, tc.canLookUp), cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecideUpdate(t *testing.T) {
	settled := record{Fingerprint: now}
	for name, tc := range map[string]struct {
		facts *facts
		due   upkeep
		want  decision
	}{
		"a settled Machine costs nothing":                            {&facts{record: settled}, upkeep{}, decision{action: done}},
		"a settled Machine is checked when it is due":                {&facts{record: settled}, upkeep{check: true}, decision{action: start, operation: runs.Drift}},
		"one that drifted is repaired before it is checked again":    {&facts{record: settled}, upkeep{check: true, repair: true}, decision{action: start, operation: runs.Update, repair: true}},
		"a change that is asked for goes before a repair":            {&facts{record: record{Fingerprint: other}}, upkeep{repair: true}, decision{action: start, operation: runs.Update}},
		"a drift check under way disturbs nobody":                    {&facts{record: settled, run: run(runs.Drift, runs.Running)}, upkeep{check: true}, decision{action: done}},
		"other inputs are brought about":                             {&facts{record: record{Fingerprint: other}}, upkeep{}, decision{action: start, operation: runs.Update}},
		"an intent is settled even when the inputs are the same":     {&facts{record: record{Fingerprint: now, Intent: begun()}}, upkeep{}, decision{action: start, operation: runs.Update}},
		"an update under way is waited for":                          {&facts{record: record{Fingerprint: other}, run: run(runs.Update, runs.Running)}, upkeep{}, decision{action: await}},
		"a create that has not settled is waited for":                {&facts{record: record{Intent: begun()}, run: run(runs.Create, runs.Running)}, upkeep{}, decision{action: await}},
		"a refused change is not planned again":                      {&facts{record: record{Fingerprint: other, Refusal: &refusal{Fingerprint: now}}}, upkeep{}, decision{action: refuse}},
		"a refusal of other inputs does not stop an update":          {&facts{record: record{Fingerprint: other, Refusal: &refusal{Fingerprint: other}}}, upkeep{}, decision{action: start, operation: runs.Update}},
		"a refused change that is taken back is settled":             {&facts{record: record{Fingerprint: now, Refusal: &refusal{Fingerprint: other}}}, upkeep{}, decision{action: done}},
		"a failure of the create does not stop the update behind it": {&facts{record: record{Intent: begun()}, run: run(runs.Create, runs.Failed)}, upkeep{}, decision{action: start, operation: runs.Update}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decideUpdate(tc.facts, now, tc.due), cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecideDelete(t *testing.T) {
	destroy := decision{action: start, operation: runs.Destroy}
	lookup := decision{action: start, operation: runs.Destroy, lookup: true}
	for name, tc := range map[string]struct {
		facts     *facts
		canLookUp bool
		want      decision
	}{
		"a Machine that nothing was made for may go":                 {&facts{}, true, decision{action: done}},
		"an instance is destroyed":                                   {&facts{stored: true, state: stateWith(1, 0), provisioned: true}, true, destroy},
		"an empty state is removed":                                  {&facts{stored: true, state: stateWith(0, 0)}, true, destroy},
		"an instance that may have been made is looked up":           {&facts{stored: true, state: stateWith(0, 0), record: record{Intent: begun()}}, true, lookup},
		"a running create is waited for":                             {&facts{run: run(runs.Create, runs.Running)}, true, decision{action: await}},
		"a create that waits gives way":                              {&facts{stored: true, run: run(runs.Create, runs.Queued)}, true, destroy},
		"a create that waits and has left no trace is just not done": {&facts{run: run(runs.Create, runs.Queued)}, true, destroy},
		"a destroy that waits is waited for":                         {&facts{stored: true, run: run(runs.Destroy, runs.Queued)}, true, decision{action: await}},
		"a destroy that succeeded is the end":                        {&facts{provisioned: true, run: run(runs.Destroy, runs.Succeeded)}, true, decision{action: done}},
		"a state that is gone is looked up":                          {&facts{provisioned: true}, true, lookup},
		"a state that is gone and cannot be looked up is an error":   {&facts{provisioned: true}, false, decision{action: unreachable}},
		"a failed create does not stop the destroy":                  {&facts{stored: true, state: stateWith(1, 0), run: run(runs.Create, runs.Failed)}, true, destroy},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decideDelete(tc.facts, tc.canLookUp), cmp.AllowUnexported(decision{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDriftChecksAreSpread(t *testing.T) {
	seen := map[time.Duration]bool{}
	for _, uid := range []string{"a", "b", "c", "d", "e", "f"} {
		after := driftAfter(time.Hour, uid)
		if after < 54*time.Minute || after > 66*time.Minute {
			t.Errorf("the check of %s is due after %s, want an hour, a tenth more or less", uid, after)
		}
		if after != driftAfter(time.Hour, uid) {
			t.Error("the same Machine has two intervals")
		}
		seen[after] = true
	}
	if len(seen) < 4 {
		t.Errorf("six Machines share %d intervals", len(seen))
	}
}
