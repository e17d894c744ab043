package tofu

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	tfjson "github.com/hashicorp/terraform-json"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

const (
	// maxLine limits one line of the -json stream. The longest is a state that the engine could not
	// save anywhere else.
	maxLine = 8 << 20
	// maxText limits the output that is kept besides -json messages.
	maxText = 16 << 10
	// maxDiagnostics limits the diagnostics of one operation.
	maxDiagnostics = 100
)

// stream parses an engine's output into a report.
type stream struct {
	redact   *redact.Redactor
	progress func(engine.Event)
	output   func(text string) // as in RunSpec; may be nil
	withheld func(text string) // the same
	begun    chan struct{}     // closed at the first output

	mu      sync.Mutex
	started bool
	stdout  lineSplitter
	stderr  lineSplitter
	text    text
	report  engine.Report
	state   []byte // a state that the engine printed because it could not save it anywhere
}

func newStream(redact *redact.Redactor, progress func(engine.Event)) *stream {
	s := &stream{
		redact:   redact,
		progress: progress,
		begun:    make(chan struct{}),
		text:     text{limit: maxText},
		report:   engine.Report{Outputs: map[string]engine.Output{}},
	}
	s.stdout = lineSplitter{limit: maxLine, each: s.read, skipped: s.skipped}
	s.stderr = lineSplitter{limit: maxText, each: s.note, skipped: s.skipped}
	return s
}

// Write implements io.Writer for the -json stream. It never fails: it keeps unparsable lines as
// text.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started = true
		close(s.begun)
	}
	s.stdout.write(p)
	return len(p), nil
}

// errorWriter returns the io.Writer for the engine's standard error.
func (s *stream) errorWriter() io.Writer { return errorWriter{s} }

type errorWriter struct{ stream *stream }

// Write implements io.Writer.
func (w errorWriter) Write(p []byte) (int, error) {
	w.stream.mu.Lock()
	defer w.stream.mu.Unlock()
	w.stream.stderr.write(p)
	return len(p), nil
}

// finish parses the rest and returns the report.
func (s *stream) finish() *engine.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stdout.end()
	s.stderr.end()
	s.report.Text = s.text.String()
	s.report.TextWithheld = s.report.TextWithheld || redact.Copies(s.report.Text)
	return &s.report
}

// note keeps a line that is not a message. It redacts before truncating, so that no part of a
// secret remains.
func (s *stream) note(line []byte) {
	clean := s.redact.Redact(string(line))
	s.text.add(clean)
	if s.redact.Withholds(string(line)) {
		s.report.TextWithheld = true
		s.withhold(clean)
		clean = "(" + redact.Withheld + ")"
	}
	s.pass(clean)
}

func (s *stream) skipped() { s.text.add("(a line was too long and is omitted)") }

// dumpedState returns the state that the engine printed, or nil.
func (s *stream) dumpedState() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *stream) read(line []byte) {
	var m message
	if line[0] != '{' || json.Unmarshal(line, &m) != nil || m.Level == "" {
		s.note(line)
		return
	}
	s.print(m)
	switch m.Type {
	case "planned_change":
		s.report.Changes = append(s.report.Changes, s.change(m.Change))
	case "resource_drift":
		s.report.Drift = append(s.report.Drift, s.change(m.Change))
	case "change_summary":
		s.summary(m.Changes)
	case "outputs":
		s.outputs(m.Outputs)
	case "diagnostic":
		s.diagnostic(m.Diagnostic)
	case "log":
		if len(m.State) > 0 {
			s.state = bytes.Clone(m.State)
		}
	default:
		s.hook(m)
	}
}

func (s *stream) change(m *changeMessage) engine.Change {
	if m == nil {
		return engine.Change{}
	}
	return engine.Change{
		Ref:     m.Resource.ref(),
		Address: s.redact.Redact(m.Resource.Address),
		Type:    m.Resource.Type,
		Action:  m.Action,
		Reason:  m.Reason,
		Import:  m.Importing != nil,
	}
}

func (s *stream) summary(m *engine.Summary) {
	switch {
	case m == nil:
	case m.Operation == engine.OperationPlan:
		s.report.Planned = *m
	default:
		s.report.Done = *m
	}
}

func (s *stream) outputs(m map[string]outputMessage) {
	for name, output := range m {
		entry := engine.Output{Sensitive: output.Sensitive, Action: output.Action}
		if entry.Action == "" { // reported by the plan, before the values are known
			entry.Action = s.report.Outputs[name].Action
		}
		if !output.Sensitive && len(output.Value) > 0 && !s.redact.Contains(string(output.Value)) {
			entry.Value = bytes.Clone(output.Value)
		}
		s.report.Outputs[name] = entry
	}
}

func (s *stream) diagnostic(m *tfjson.Diagnostic) {
	if m == nil || len(s.report.Diagnostics) >= maxDiagnostics {
		return
	}
	s.report.Diagnostics = append(s.report.Diagnostics, diagnosticOf(m).Redact(s.redact))
}

func (s *stream) hook(m message) {
	kind, known := hookKinds[m.Type]
	if !known && !passedOver[m.Type] {
		s.report.Unknown++
	}
	if !known || m.Hook == nil {
		return
	}
	event := engine.Event{
		Ref:     m.Hook.Resource.ref(),
		Kind:    kind,
		Address: s.redact.Redact(m.Hook.Resource.Address),
		Action:  m.Hook.Action,
		ID:      s.redact.Redact(m.Hook.ID),
		Elapsed: time.Duration(m.Hook.Elapsed * float64(time.Second)),
	}
	if kind == engine.EventCompleted {
		s.report.Applied = append(s.report.Applied,
			engine.Applied{Ref: event.Ref, Address: event.Address, Action: event.Action, ID: event.ID})
	}
	if s.progress != nil {
		s.progress(event)
	}
}

var hookKinds = map[string]engine.EventKind{
	"apply_start":    engine.EventStarted,
	"apply_progress": engine.EventProgress,
	"apply_complete": engine.EventCompleted,
	"apply_errored":  engine.EventFailed,
}

// passedOver are the message types that do not affect a run's outcome.
var passedOver = map[string]bool{
	"version": true, "refresh_start": true, "refresh_complete": true, "ephemeral_op_start": true,
	"ephemeral_op_progress": true, "ephemeral_op_complete": true,
}

// message is one line of the -json stream.
type message struct {
	Level      string                   `json:"@level"`
	Message    string                   `json:"@message"`
	Timestamp  string                   `json:"@timestamp"`
	Type       string                   `json:"type"`
	Change     *changeMessage           `json:"change"`
	Changes    *engine.Summary          `json:"changes"`
	Outputs    map[string]outputMessage `json:"outputs"`
	Diagnostic *tfjson.Diagnostic       `json:"diagnostic"`
	Hook       *hookMessage             `json:"hook"`
	State      json.RawMessage          `json:"state"`
}

type resourceMessage struct {
	Address string `json:"addr"`
	Module  string `json:"module"`
	// Resource is the address in the module. Addresses of data sources start with their mode.
	Resource string `json:"resource"`
	Type     string `json:"resource_type"`
	Name     string `json:"resource_name"`
}

func (m resourceMessage) ref() engine.Ref {
	return engine.Ref{Module: m.Module, Name: m.Name, Data: strings.HasPrefix(m.Resource, "data.")}
}

type changeMessage struct {
	Resource  resourceMessage `json:"resource"`
	Action    engine.Action   `json:"action"`
	Reason    string          `json:"reason"`
	Importing *struct{}       `json:"importing"`
}

type outputMessage struct {
	Sensitive bool            `json:"sensitive"`
	Action    engine.Action   `json:"action"`
	Value     json.RawMessage `json:"value"`
}

type hookMessage struct {
	Resource resourceMessage `json:"resource"`
	Action   engine.Action   `json:"action"`
	ID       string          `json:"id_value"`
	Elapsed  float64         `json:"elapsed_seconds"`
}

func diagnosticOf(m *tfjson.Diagnostic) failure.Diagnostic {
	d := failure.Diagnostic{
		Severity: failure.Severity(m.Severity),
		Summary:  m.Summary,
		Detail:   m.Detail,
		Address:  m.Address,
	}
	if m.Range != nil {
		d.File, d.Line = m.Range.Filename, m.Range.Start.Line
	}
	if m.Snippet != nil {
		d.Context, d.Snippet = ptr.Deref(m.Snippet.Context, ""), m.Snippet.Code
		for _, value := range m.Snippet.Values {
			d.Values = append(d.Values, value.Traversal+" "+value.Statement)
		}
	}
	return d
}
