package pulumi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

const thisAddress = "acme:index:Server.this"

func step(op apitype.OpType, urn, typ string) apitype.StepEventMetadata {
	return apitype.StepEventMetadata{Op: op, URN: urn, Type: typ}
}

func pre(op apitype.OpType) apitype.EngineEvent {
	return apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: step(op, urnThis, "acme:index:Server")}}
}

func outputs(op apitype.OpType) apitype.EngineEvent {
	return apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: step(op, urnThis, "acme:index:Server")}}
}

// refreshed is the event of a refresh, with what it found of an object that was small; nil for nothing.
func refreshed(found map[string]any) apitype.EngineEvent {
	reported := step(apitype.OpRefresh, urnThis, "acme:index:Server")
	reported.Old = &apitype.StepEventStateMetadata{ID: "s1", Outputs: map[string]any{"size": "small"}}
	if found != nil {
		reported.New = &apitype.StepEventStateMetadata{ID: "s1", Outputs: found}
	}
	return apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: reported}}
}

func stackPre(op apitype.OpType) apitype.EngineEvent {
	return apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: step(op, urnStack, stackType)}}
}

func providerPre(op apitype.OpType) apitype.EngineEvent {
	return apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: step(op, urnProvider, providerPrefix+"acme")}}
}

func summary(changes map[apitype.OpType]int) apitype.EngineEvent {
	return apitype.EngineEvent{SummaryEvent: &apitype.SummaryEvent{ResourceChanges: changes}}
}

func diagnosticError(message string) apitype.EngineEvent {
	return apitype.EngineEvent{DiagnosticEvent: &apitype.DiagnosticEvent{Severity: "error", Message: message, URN: urnThis}}
}

func readAll(preview bool, all ...apitype.EngineEvent) *engine.Report {
	read := newReader(redact.New([]string{"hunter22"}), nil, preview)
	for _, event := range all {
		read.take(event)
	}
	return read.finish()
}

func TestPlansAreRead(t *testing.T) {
	cases := map[string]struct {
		events     []apitype.EngineEvent
		want       []engine.Action
		wantDrift  []engine.Action
		wantNone   bool
		wantNoPlan bool
	}{
		"a first plan creates: stack and provider are Pulumi's own and do not count": {
			events: []apitype.EngineEvent{stackPre(apitype.OpCreate), providerPre(apitype.OpCreate), pre(apitype.OpCreate), summary(map[apitype.OpType]int{"create": 2})},
			want:   []engine.Action{engine.ActionCreate},
		},
		"nothing changes": {
			events: []apitype.EngineEvent{stackPre(apitype.OpSame), pre(apitype.OpSame), summary(map[apitype.OpType]int{"same": 2})},
			want:   []engine.Action{engine.ActionNoOp}, wantNone: true,
		},
		"a change in place": {
			events: []apitype.EngineEvent{stackPre(apitype.OpSame), pre(apitype.OpUpdate), summary(map[apitype.OpType]int{"same": 1, "update": 1})},
			want:   []engine.Action{engine.ActionUpdate},
		},
		"a replacement is reported as three steps and is one change": {
			events: []apitype.EngineEvent{
				stackPre(apitype.OpSame), pre(apitype.OpCreateReplacement), pre(apitype.OpReplace), pre(apitype.OpDeleteReplaced),
				summary(map[apitype.OpType]int{"same": 1, "replace": 1}),
			},
			want: []engine.Action{engine.ActionReplace},
		},
		"a refresh finds the object gone, and the plan makes it anew": {
			events: []apitype.EngineEvent{
				pre(apitype.OpRefresh), refreshed(nil), stackPre(apitype.OpSame), pre(apitype.OpCreate),
				summary(map[apitype.OpType]int{"same": 1, "create": 1}),
			},
			want: []engine.Action{engine.ActionCreate}, wantDrift: []engine.Action{engine.ActionDelete},
		},
		"a refresh finds the object as it was": {
			events: []apitype.EngineEvent{
				pre(apitype.OpRefresh), refreshed(map[string]any{"size": "small"}), stackPre(apitype.OpSame), pre(apitype.OpSame),
				summary(map[apitype.OpType]int{"same": 2}),
			},
			want: []engine.Action{engine.ActionNoOp}, wantNone: true,
		},
		"a refresh finds the object changed, and the plan brings it back": {
			events: []apitype.EngineEvent{
				pre(apitype.OpRefresh), refreshed(map[string]any{"size": "big"}), stackPre(apitype.OpSame), pre(apitype.OpUpdate),
				summary(map[apitype.OpType]int{"same": 1, "update": 1}),
			},
			want: []engine.Action{engine.ActionUpdate}, wantDrift: []engine.Action{engine.ActionUpdate},
		},
		"the count names a change without an event: that is no plan to decide by": {
			events: []apitype.EngineEvent{stackPre(apitype.OpSame), pre(apitype.OpSame), summary(map[apitype.OpType]int{"same": 2, "delete": 1})},
			want:   []engine.Action{engine.ActionNoOp}, wantNoPlan: true,
		},
		"an event names a change that the count does not have": {
			events: []apitype.EngineEvent{stackPre(apitype.OpSame), pre(apitype.OpDelete), summary(map[apitype.OpType]int{"same": 1})},
			want:   []engine.Action{engine.ActionDelete}, wantNoPlan: true,
		},
		"a step that is not known here": {
			events:     []apitype.EngineEvent{stackPre(apitype.OpSame), pre("teleport"), summary(map[apitype.OpType]int{"same": 1, "teleport": 1})},
			wantNoPlan: true,
		},
		"no count: the plan was cut off": {
			events: []apitype.EngineEvent{stackPre(apitype.OpSame), pre(apitype.OpSame)}, want: []engine.Action{engine.ActionNoOp}, wantNoPlan: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := readAll(true, tc.events...)
			if diff := cmp.Diff(tc.want, actionsOf(report.Changes)); diff != "" {
				t.Errorf("changes differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantDrift, actionsOf(report.Drift)); diff != "" {
				t.Errorf("drift differs (-want +got):\n%s", diff)
			}
			if report.NoChange() != tc.wantNone {
				t.Errorf("NoChange() is %v, want %v", report.NoChange(), tc.wantNone)
			}
			if planned := report.Planned.Operation == engine.OperationPlan; planned == tc.wantNoPlan {
				t.Errorf("there is a plan: %v, want %v", planned, !tc.wantNoPlan)
			}
			for _, change := range report.Changes {
				if change.Address != thisAddress {
					t.Errorf("a change is of %s, want %s", change.Address, thisAddress)
				}
			}
		})
	}
}

func actionsOf(changes []engine.Change) []engine.Action {
	var reported []engine.Action
	for _, change := range changes {
		reported = append(reported, change.Action)
	}
	return reported
}

func TestProvidersOfTheProgramCountAndAreNoChange(t *testing.T) {
	explicit := apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{
		Metadata: step(apitype.OpDelete, "urn:pulumi:machine::acme::pulumi:providers:acme::mine", providerPrefix+"acme"),
	}}
	report := readAll(true, providerPre(apitype.OpCreate), pre(apitype.OpSame), explicit, summary(map[apitype.OpType]int{"same": 2, "delete": 1}))
	if !report.NoChange() {
		t.Errorf("the plan is %+v, want one that changes nothing that exists", report)
	}
}

func TestOutputsThatChange(t *testing.T) {
	stack := step(apitype.OpSame, urnStack, stackType)
	stack.Old = &apitype.StepEventStateMetadata{Outputs: map[string]any{"address": "10.0.0.1", "zone": "a", "gone": true}}
	stack.New = &apitype.StepEventStateMetadata{Outputs: map[string]any{"address": "10.0.0.2", "zone": "a"}}
	report := readAll(true, stackPre(apitype.OpSame), pre(apitype.OpSame), apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: stack}},
		summary(map[apitype.OpType]int{"same": 2}))
	want := map[string]engine.Output{"address": {Action: engine.ActionUpdate}, "zone": {Action: engine.ActionNoOp}, "gone": {Action: engine.ActionUpdate}}
	if diff := cmp.Diff(want, report.Outputs); diff != "" {
		t.Errorf("outputs differ (-want +got):\n%s", diff)
	}
	if !report.OutputsOnly() {
		t.Error("OutputsOnly() is false, want true: no resource changes")
	}
}

func TestProgressOfACreate(t *testing.T) {
	var reported []engine.Event
	read := newReader(redact.New(nil), func(e engine.Event) { reported = append(reported, e) }, false)
	for _, event := range []apitype.EngineEvent{
		stackPre(apitype.OpCreate), providerPre(apitype.OpCreate), pre(apitype.OpCreate), outputs(apitype.OpCreate), summary(map[apitype.OpType]int{"create": 2}),
	} {
		read.take(event)
	}
	report := read.finish()
	this := engine.Ref{Name: "this"}
	want := []engine.Event{
		{Ref: this, Kind: engine.EventStarted, Address: thisAddress, Action: engine.ActionCreate},
		{Ref: this, Kind: engine.EventCompleted, Address: thisAddress, Action: engine.ActionCreate},
	}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]engine.Applied{{Ref: this, Address: thisAddress, Action: engine.ActionCreate}}, report.Applied); diff != "" {
		t.Errorf("what was applied differs (-want +got):\n%s", diff)
	}
}

func TestTheInstanceIsReportedWhateverItsTypeIs(t *testing.T) {
	cases := map[string]struct {
		urn, typ string
		op       apitype.OpType
		want     bool
	}{
		"a type with dots":         {"urn:pulumi:machine::acme::kubernetes:kubevirt.io/v1:VirtualMachine::this", "kubernetes:kubevirt.io/v1:VirtualMachine", apitype.OpRefresh, true},
		"a part of something else": {"urn:pulumi:machine::acme::acme:index:Set$acme:index:Disk::this", "acme:index:Disk", apitype.OpCreate, false},
		"another name":             {"urn:pulumi:machine::acme::acme:index:Server::not.this", "acme:index:Server", apitype.OpCreate, false},
		"what is only read":        {"urn:pulumi:machine::acme::acme:index:Server::this", "acme:index:Server", apitype.OpRead, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gone := step(tc.op, tc.urn, tc.typ)
			gone.Old = &apitype.StepEventStateMetadata{ID: "s1"}
			var report *engine.Report
			if tc.op == apitype.OpRefresh {
				report = readAll(true, apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: gone}})
			} else {
				report = readAll(true, apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: gone}})
			}
			found := append(report.Missing(), report.Changes...)
			if len(found) != 1 || found[0].Instance() != tc.want {
				t.Errorf("found %+v, want one that is the instance: %t", found, tc.want)
			}
		})
	}
}

func TestDiagnosticsAreWithoutSecretsColoursAndEchoes(t *testing.T) {
	report := readAll(false, diagnosticError("<{%reset%}>quota exceeded for hunter22\ndetail hunter22<{%reset%}>\n"), diagnosticError("update failed"),
		diagnosticError("Error registering resource [port]: no diagnostics"))
	want := []failure.Diagnostic{{Severity: failure.SeverityError, Summary: "quota exceeded for (sensitive)", Detail: "detail (sensitive)", Address: "this"}}
	if diff := cmp.Diff(want, report.Diagnostics); diff != "" {
		t.Errorf("diagnostics differ (-want +got):\n%s", diff)
	}
	if got := classify(report.Errors(), nil); got != failure.Quota {
		t.Errorf("the class is %s, want %s", got, failure.Quota)
	}
	if only := readAll(false, diagnosticError("update failed")); len(only.Diagnostics) != 1 {
		t.Errorf("diagnostics are %v, want the echo where it is all that there is", only.Diagnostics)
	}
}

func TestAnAddressReadsAsItIsWhateverALineOfASecretIsLike(t *testing.T) {
	read := newReader(redact.New([]string{"clouds:\n  acme:index\n"}), nil, true)
	read.take(pre(apitype.OpSame))
	if changes := read.finish().Changes; len(changes) != 1 || changes[0].Address != thisAddress {
		t.Errorf("the changes are %+v, want one of %s", changes, thisAddress)
	}
}
