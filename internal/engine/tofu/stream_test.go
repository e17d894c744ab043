package tofu

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// applyStream is what an engine writes while it applies, as OpenTofu 1.12 does.
const applyStream = `{"@level":"info","@message":"OpenTofu 1.12.6","type":"version","ui":"1.2"}
{"@level":"info","type":"resource_drift","change":{"resource":{"addr":"x_vm.old","module":"","resource":"x_vm.old","resource_type":"x_vm","resource_name":"old"},"action":"delete"}}
{"@level":"info","type":"planned_change","change":{"resource":{"addr":"x_vm.this","module":"","resource":"x_vm.this","resource_type":"x_vm","resource_name":"this"},"action":"replace","reason":"cannot_update"}}
{"@level":"info","type":"planned_change","change":{"resource":{"addr":"module.disks.x_disk.this","module":"module.disks","resource":"x_disk.this","resource_type":"x_disk","resource_name":"this"},"action":"import","importing":{"id":"d-1"}}}
{"@level":"info","type":"change_summary","changes":{"add":1,"change":0,"import":1,"remove":1,"forget":0,"operation":"plan"}}
{"@level":"info","type":"outputs","outputs":{"id":{"sensitive":false,"action":"update"}}}
{"@level":"info","type":"apply_start","hook":{"resource":{"addr":"x_vm.this","module":"","resource":"x_vm.this","resource_name":"this"},"action":"create"}}
{"@level":"info","type":"apply_progress","hook":{"resource":{"addr":"x_vm.this","module":"","resource":"x_vm.this","resource_name":"this"},"action":"create","elapsed_seconds":10}}
{"@level":"info","type":"apply_complete","hook":{"resource":{"addr":"x_vm.this","module":"","resource":"x_vm.this","resource_name":"this"},"action":"create","id_key":"id","id_value":"i-1","elapsed_seconds":12}}
Warning: something that is not JSON
{"@level":"error","type":"diagnostic","diagnostic":{"severity":"error","summary":"No tags","detail":"pass hunter22","address":"x_vm.this","range":{"filename":"main.tf","start":{"line":7}},"snippet":{"context":"resource \"x_vm\" \"this\"","code":"tags = var.tags","values":[{"traversal":"var.tags","statement":"is \"hunter22\""}]}}}
{"@level":"info","type":"change_summary","changes":{"add":1,"change":0,"import":1,"remove":1,"forget":0,"operation":"apply"}}
{"@level":"info","type":"outputs","outputs":{"id":{"sensitive":false,"value":"i-1"},"leak":{"sensitive":false,"value":{"a":["hunter22"]}},"secret":{"sensitive":true}}}
`

func wantApplyReport() *engine.Report {
	this := engine.Ref{Name: "this"}
	summary := engine.Summary{Add: 1, Import: 1, Remove: 1}
	planned, done := summary, summary
	planned.Operation, done.Operation = engine.OperationPlan, engine.OperationApply
	return &engine.Report{
		Changes: []engine.Change{
			{Ref: this, Address: "x_vm.this", Type: "x_vm", Action: engine.ActionReplace, Reason: "cannot_update"},
			{Ref: engine.Ref{Module: "module.disks", Name: "this"}, Address: "module.disks.x_disk.this", Type: "x_disk", Action: engine.ActionImport, Import: true},
		},
		Drift:   []engine.Change{{Ref: engine.Ref{Name: "old"}, Address: "x_vm.old", Type: "x_vm", Action: engine.ActionDelete}},
		Applied: []engine.Applied{{Ref: this, Address: "x_vm.this", Action: engine.ActionCreate, ID: "i-1"}},
		Planned: planned,
		Done:    done,
		Outputs: map[string]engine.Output{
			"id":     {Action: engine.ActionUpdate, Value: json.RawMessage(`"i-1"`)},
			"leak":   {},
			"secret": {Sensitive: true},
		},
		Diagnostics: []failure.Diagnostic{{
			Severity: failure.SeverityError, Summary: "No tags", Detail: "pass (sensitive)", Address: "x_vm.this", File: "main.tf", Line: 7,
			Context: `resource "x_vm" "this"`, Snippet: "tags = var.tags", Values: []string{`var.tags is "(sensitive)"`},
		}},
		Text: "Warning: something that is not JSON",
	}
}

func TestStreamReadsPiecesOfAnySize(t *testing.T) {
	for _, size := range []int{1, 7, 4096, len(applyStream)} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			s := newStream(redact.New([]string{"hunter22"}), nil)
			for rest := applyStream; rest != ""; {
				n := min(size, len(rest))
				if _, err := s.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if diff := cmp.Diff(wantApplyReport(), s.finish()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStreamReportsProgress(t *testing.T) {
	var got []engine.Event
	s := newStream(redact.New(nil), func(e engine.Event) { got = append(got, e) })
	write(t, s, applyStream)
	this := engine.Ref{Name: "this"}
	want := []engine.Event{
		{Ref: this, Kind: engine.EventStarted, Address: "x_vm.this", Action: engine.ActionCreate},
		{Ref: this, Kind: engine.EventProgress, Address: "x_vm.this", Action: engine.ActionCreate, Elapsed: 10 * time.Second},
		{Ref: this, Kind: engine.EventCompleted, Address: "x_vm.this", Action: engine.ActionCreate, ID: "i-1", Elapsed: 12 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestStreamSkipsALineThatIsTooLong(t *testing.T) {
	s := newStream(redact.New(nil), nil)
	write(t, s, strings.Repeat("x", maxLine+1)+"\n"+applyStream)
	got := s.finish()
	if len(got.Changes) != 2 {
		t.Errorf("%d changes are read after the long line, want 2", len(got.Changes))
	}
	if !strings.Contains(got.Text, "too long") || len(got.Text) > maxText {
		t.Errorf("text is %q, want a short note of the line that was left out", redact.Brief(got.Text))
	}
}

func TestStreamBoundsText(t *testing.T) {
	s := newStream(redact.New(nil), nil)
	for range 2000 {
		write(t, s, "plain text that goes on and on\n")
	}
	if got := len(s.finish().Text); got > maxText {
		t.Errorf("text has %d bytes, want at most %d", got, maxText)
	}
}

func TestStreamKeepsTheLastLineWithoutAnEnd(t *testing.T) {
	s := newStream(redact.New(nil), nil)
	write(t, s, `{"@level":"info","type":"change_summary","changes":{"operation":"plan"}}`)
	if !s.finish().NoChange() {
		t.Error("the last line is not read")
	}
}

func TestStreamKeepsSecretsOutOfText(t *testing.T) {
	s := newStream(redact.New([]string{"hunter22"}), nil)
	write(t, s, "on stdout: hunter22\n")
	if _, err := s.errorWriter().Write([]byte("panic: hunter22\n")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("on stdout: (sensitive)\npanic: (sensitive)", s.finish().Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestStreamKeepsADumpedStateOutOfTheReport(t *testing.T) {
	s := newStream(redact.New(nil), nil)
	write(t, s, `{"@level":"info","@message":"Emergency state dump","type":"log","state":{"version":4,"serial":3}}`+"\n")
	report := s.finish()
	if diff := cmp.Diff(`{"version":4,"serial":3}`, string(s.dumpedState())); diff != "" {
		t.Errorf("dumped state (-want +got):\n%s", diff)
	}
	if strings.Contains(fmt.Sprint(report), "serial") {
		t.Errorf("the state is in the report: %v", report)
	}
}

func write(t *testing.T, s *stream, text string) {
	t.Helper()
	if _, err := s.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}
