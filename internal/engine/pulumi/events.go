package pulumi

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// maxDiagnostics limits the diagnostics of one operation.
const maxDiagnostics = 100

// actions maps steps in events to actions. A replacement is reported as three steps, only one of
// which counts.
var actions = map[apitype.OpType]engine.Action{
	apitype.OpSame: engine.ActionNoOp, apitype.OpCreate: engine.ActionCreate, apitype.OpUpdate: engine.ActionUpdate,
	apitype.OpDelete: engine.ActionDelete, apitype.OpReplace: engine.ActionReplace, apitype.OpRead: engine.ActionRead,
	apitype.OpReadReplacement: engine.ActionReplace, apitype.OpImport: engine.ActionImport,
	apitype.OpImportReplacement: engine.ActionReplace,
}

// partOfReplace are the other steps of a replacement, and non-steps.
var partOfReplace = []apitype.OpType{
	apitype.OpCreateReplacement, apitype.OpDeleteReplaced, apitype.OpDiscardReplaced, apitype.OpRefresh,
	apitype.OpReadDiscard, apitype.OpRemovePendingReplace,
}

// reader converts events to a report.
type reader struct {
	redact   *redact.Redactor
	progress func(engine.Event)
	output   func(text string) // as in RunSpec; may be nil
	withheld func(text string) // the same
	also     func(apitype.EngineEvent)
	preview  bool

	mu     sync.Mutex
	report engine.Report
	// counted counts the steps by the engine's names, to compare with its own count at the end.
	counted map[apitype.OpType]int
	summary *apitype.SummaryEvent
	// strange means that there was an unknown step, or something that is not an event.
	strange bool
}

func newReader(redact *redact.Redactor, progress func(engine.Event), preview bool) *reader {
	return &reader{
		redact: redact, progress: progress, preview: preview, counted: map[apitype.OpType]int{},
		report: engine.Report{Outputs: map[string]engine.Output{}},
	}
}

// maxEvent limits one event. It contains the complete resource, before and after.
const maxEvent = 64 << 20

// read reads events, one a line, until the end. Anything unreadable invalidates a plan.
func (r *reader) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		var event apitype.EngineEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			r.spoil()
			continue
		}
		r.take(event)
	}
	if lines.Err() != nil {
		r.spoil()
		_, _ = io.Copy(io.Discard, from) // the writer must not block
	}
}

func (r *reader) spoil() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strange = true
}

func (r *reader) take(event apitype.EngineEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.also != nil {
		r.also(event)
	}
	r.print(event)
	switch {
	case event.ResourcePreEvent != nil:
		r.pre(event.ResourcePreEvent.Metadata)
	case event.ResOutputsEvent != nil:
		r.outputs(event.ResOutputsEvent.Metadata)
	case event.ResOpFailedEvent != nil:
		r.emit(engine.EventFailed, event.ResOpFailedEvent.Metadata)
	case event.DiagnosticEvent != nil:
		r.diagnostic(event.DiagnosticEvent)
	case event.SummaryEvent != nil:
		r.summary = event.SummaryEvent
	}
}

// internal reports whether a resource is Pulumi's own, without an object behind it.
func internal(m apitype.StepEventMetadata) bool {
	return m.Type == stackType || strings.HasPrefix(m.Type, providerPrefix)
}

// uncounted reports whether the engine does not count a resource: a provider that the program does
// not declare.
func uncounted(m apitype.StepEventMetadata) bool {
	_, name, _ := cutLast(m.URN)
	return strings.HasPrefix(m.Type, providerPrefix) && strings.HasPrefix(name, "default")
}

func (r *reader) pre(m apitype.StepEventMetadata) {
	if m.Op == apitype.OpRefresh {
		return
	}
	if !uncounted(m) {
		r.counted[m.Op]++
	}
	if internal(m) {
		return
	}
	r.emit(engine.EventStarted, m)
	if slices.Contains(partOfReplace, m.Op) {
		return
	}
	action, known := actions[m.Op]
	if !known {
		r.strange = true
		return
	}
	r.report.Changes = append(r.report.Changes, r.change(m, action))
}

func (r *reader) outputs(m apitype.StepEventMetadata) {
	switch {
	case m.Type == stackType:
		r.stackOutputs(m)
	case internal(m):
	case m.Op == apitype.OpRefresh:
		r.refreshed(m)
	default:
		r.emit(engine.EventCompleted, m)
		if action, known := actions[m.Op]; known && !r.preview && action != engine.ActionNoOp && action != engine.ActionRead {
			r.report.Applied = append(r.report.Applied, engine.Applied{Ref: refOf(m), Address: r.addressOf(m), Action: action})
		}
	}
}

// refreshed adds the result of a refresh. Resulting changes follow as steps of a plan.
func (r *reader) refreshed(m apitype.StepEventMetadata) {
	if action, differs := driftOf(m); differs {
		r.report.Drift = append(r.report.Drift, r.change(m, action))
	}
}

// driftOf reports whether a refresh found an object that differs from the checkpoint.
func driftOf(m apitype.StepEventMetadata) (engine.Action, bool) {
	switch {
	case m.Old == nil:
		return "", false
	case m.New == nil || m.New.ID == "":
		return engine.ActionDelete, true
	case !same(m.Old.Outputs, m.New.Outputs):
		return engine.ActionUpdate, true
	}
	return "", false
}

// addressOf returns type and name. The type is the program's own and is not redacted, even if it
// matches a line of a secret.
func (r *reader) addressOf(m apitype.StepEventMetadata) string {
	_, name, _ := cutLast(m.URN)
	return m.Type + "." + r.redact.Redact(name)
}

// refOf parses urn:pulumi:stack::project::parent$type::name. A resource with a parent is never the
// instance.
func refOf(m apitype.StepEventMetadata) engine.Ref {
	parts := strings.SplitN(m.URN, "::", 4)
	if len(parts) < 4 {
		return engine.Ref{}
	}
	ref := engine.Ref{Name: parts[3], Data: m.Op == apitype.OpRead}
	if parents, _, nested := strings.Cut(parts[2], "$"+m.Type); nested {
		ref.Module = parents
	}
	return ref
}

func (r *reader) change(m apitype.StepEventMetadata, action engine.Action) engine.Change {
	keys := m.Keys
	if len(keys) == 0 {
		keys = m.Diffs
	}
	return engine.Change{
		Ref: refOf(m), Address: r.addressOf(m), Type: m.Type, Action: action, Import: m.Op == apitype.OpImport,
		Reason: r.redact.Redact(strings.Join(keys, ", ")),
	}
}

func (r *reader) emit(kind engine.EventKind, m apitype.StepEventMetadata) {
	if r.progress == nil || r.preview || internal(m) {
		return
	}
	action, known := actions[m.Op]
	if m.Op == apitype.OpCreateReplacement {
		action, known = engine.ActionCreate, true
	}
	if known && action != engine.ActionNoOp {
		r.progress(engine.Event{Ref: refOf(m), Kind: kind, Address: r.addressOf(m), Action: action})
	}
}

// stackOutputs adds the outputs that change.
func (r *reader) stackOutputs(m apitype.StepEventMetadata) {
	var before, after map[string]any
	if m.Old != nil {
		before = m.Old.Outputs
	}
	if m.New != nil {
		after = m.New.Outputs
	}
	all := maps.Clone(before)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, after)
	for name := range all {
		action := engine.ActionNoOp
		if !same(before[name], after[name]) {
			action = engine.ActionUpdate
		}
		r.report.Outputs[name] = engine.Output{Action: action}
	}
}

func same(a, b any) bool {
	first, err := json.Marshal(a)
	if err != nil {
		return false
	}
	second, err := json.Marshal(b)
	return err == nil && string(first) == string(second)
}

func (r *reader) diagnostic(d *apitype.DiagnosticEvent) {
	if d.Ephemeral || (d.Severity != "error" && d.Severity != "warning") || len(r.report.Diagnostics) >= maxDiagnostics {
		return
	}
	r.report.Diagnostics = append(r.report.Diagnostics, diagnosticOf(d).Redact(r.redact))
}

func diagnosticOf(d *apitype.DiagnosticEvent) failure.Diagnostic {
	severity := failure.SeverityError
	if d.Severity == "warning" {
		severity = failure.SeverityWarning
	}
	message := strings.TrimSpace(colors.Never.Colorize(d.Message))
	summary, detail, _ := strings.Cut(message, "\n")
	one := failure.Diagnostic{Severity: severity, Summary: summary, Detail: strings.TrimSpace(detail)}
	if _, name, ok := cutLast(d.URN); ok {
		one.Address = name
	}
	return one
}

// finish returns the report. A plan is valid only if the engine's own count matches the steps that
// were read.
func (r *reader) finish() *engine.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.report
	report.Diagnostics = withoutEcho(report.Diagnostics)
	if r.summary == nil || r.strange || !r.agrees() {
		return &report
	}
	if r.preview {
		report.Planned = report.Counted(engine.OperationPlan)
	} else {
		report.Done = report.Counted(engine.OperationApply)
	}
	return &report
}

// agrees compares the steps that were read with the engine's own count.
func (r *reader) agrees() bool {
	changing := func(counts map[apitype.OpType]int) map[apitype.OpType]int {
		left := maps.Clone(counts)
		maps.DeleteFunc(left, func(op apitype.OpType, _ int) bool {
			return slices.Contains(partOfReplace, op) || op == apitype.OpSame || op == apitype.OpRead // neither changes anything
		})
		return left
	}
	return maps.Equal(changing(r.counted), changing(r.summary.ResourceChanges))
}

// unregistered matches Pulumi YAML's message about a resource or output that depends on something
// that failed before.
var unregistered = regexp.MustCompile(`^Error registering (?:resource|output|variable) \[[^\]]*\]: no diagnostics$`)

// withoutEcho drops errors that only say that another error occurred.
func withoutEcho(diagnostics []failure.Diagnostic) []failure.Diagnostic {
	echo := func(d failure.Diagnostic) bool {
		return d.Severity == failure.SeverityError && d.Detail == "" &&
			(d.Summary == "update failed" || d.Summary == "preview failed" || d.Summary == "refresh failed" ||
				d.Summary == "destroy failed" ||
				unregistered.MatchString(d.Summary))
	}
	kept := slices.DeleteFunc(slices.Clone(diagnostics), echo)
	if !slices.ContainsFunc(kept, func(d failure.Diagnostic) bool { return d.Severity == failure.SeverityError }) {
		return diagnostics
	}
	return kept
}
