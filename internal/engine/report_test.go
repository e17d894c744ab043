package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReportDecisions(t *testing.T) {
	type decisions struct {
		NoChange, OutputsOnly, CreatesOnly, InPlaceOnly bool
		Destroys, Creates                               int
	}
	plan := func(s Summary, changes ...Change) Report {
		s.Operation = OperationPlan
		return Report{Planned: s, Changes: changes}
	}
	outputs := func(r Report, action Action) Report {
		r.Outputs = map[string]Output{"id": {Action: action}}
		return r
	}
	cases := map[string]struct {
		report Report
		want   decisions
	}{
		"without a plan nothing is decided": {
			report: Report{},
		},
		"an engine that ended before it counted its changes has no plan": {
			report: Report{Changes: []Change{{Action: ActionUpdate}}},
		},
		"an empty plan is no change and harmless in every way": {
			report: outputs(plan(Summary{}), ActionNoOp),
			want:   decisions{NoChange: true, CreatesOnly: true, InPlaceOnly: true},
		},
		"a changed output alone": {
			report: outputs(plan(Summary{}), ActionUpdate),
			want:   decisions{OutputsOnly: true, CreatesOnly: true, InPlaceOnly: true},
		},
		"a data source that is read during apply is no change": {
			report: plan(Summary{}, Change{Action: ActionRead}),
			want:   decisions{NoChange: true, CreatesOnly: true, InPlaceOnly: true},
		},
		"a create": {
			report: plan(Summary{Add: 1}, Change{Action: ActionCreate}),
			want:   decisions{CreatesOnly: true, Creates: 1},
		},
		"an update in place": {
			report: plan(Summary{Change: 1}, Change{Action: ActionUpdate}),
			want:   decisions{InPlaceOnly: true},
		},
		"a move in the state": {
			report: plan(Summary{}, Change{Action: actionMove}),
			want:   decisions{InPlaceOnly: true},
		},
		"an update together with a create is not in place": {
			report: plan(Summary{Add: 1, Change: 1}, Change{Action: ActionUpdate}, Change{Action: ActionCreate}),
			want:   decisions{Creates: 1},
		},
		"a replace": {
			report: plan(Summary{Add: 1, Remove: 1}, Change{Action: ActionReplace}),
			want:   decisions{Destroys: 1},
		},
		"a replace beside an update": {
			report: plan(Summary{Add: 1, Remove: 1, Change: 1}, Change{Action: ActionUpdate}, Change{Action: ActionReplace}),
			want:   decisions{Destroys: 1},
		},
		"a delete": {
			report: plan(Summary{Remove: 1}, Change{Action: ActionDelete}),
			want:   decisions{Destroys: 1},
		},
		"an import and a create": {
			report: plan(Summary{Import: 1, Add: 1}, Change{Action: ActionImport, Import: true}, Change{Action: ActionCreate}),
			want:   decisions{CreatesOnly: true, Creates: 1},
		},
		"an import that is changed in place": {
			report: plan(Summary{Import: 1, Change: 1}, Change{Action: ActionUpdate, Import: true}),
			want:   decisions{CreatesOnly: true},
		},
		"an import that would be replaced is no create": {
			report: plan(Summary{Import: 1, Add: 1, Remove: 1}, Change{Action: ActionReplace, Import: true}),
			want:   decisions{Destroys: 1},
		},
		"a resource that is forgotten is destroyed as far as we know": {
			report: plan(Summary{Forget: 1}, Change{Action: ActionForget}),
			want:   decisions{Destroys: 1},
		},
		"Terraform does not count what it forgets": {
			report: plan(Summary{}, Change{Action: ActionForget}),
			want:   decisions{Destroys: 1},
		},
		"a change that is counted but listed as none is not trusted": {
			report: plan(Summary{Add: 1, Forget: 1}, Change{Action: ActionNoOp}),
		},
		"a change that is counted but not listed is not trusted": {
			report: plan(Summary{Change: 1, Remove: 1}, Change{Action: ActionUpdate}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &tc.report
			got := decisions{
				NoChange: r.NoChange(), OutputsOnly: r.OutputsOnly(), CreatesOnly: r.CreatesOnly(), InPlaceOnly: r.InPlaceOnly(),
				Destroys: len(r.Destroys()), Creates: len(r.Creates()),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMissingReturnsOnlyWhatIsGone(t *testing.T) {
	r := &Report{Drift: []Change{{Address: "a", Action: ActionUpdate}, {Address: "b", Action: ActionDelete}}}
	if diff := cmp.Diff([]Change{{Address: "b", Action: ActionDelete}}, r.Missing()); diff != "" {
		t.Errorf("Missing() (-want +got):\n%s", diff)
	}
}
