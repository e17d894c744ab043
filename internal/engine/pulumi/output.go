package pulumi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// print passes on the text of an event for people. It drops text for developers and progress
// display.
func (r *reader) print(event apitype.EngineEvent) {
	if r.output == nil {
		return
	}
	at := time.Unix(int64(event.Timestamp), 0)
	switch {
	case event.DiagnosticEvent != nil:
		r.printDiagnostic(at, event.DiagnosticEvent)
	case event.StdoutEvent != nil:
		r.printPlain(at, event.StdoutEvent.Message)
	default:
		if text := r.textOf(event); text != "" {
			r.show(at, text, false)
		}
	}
}

func (r *reader) printDiagnostic(at time.Time, d *apitype.DiagnosticEvent) {
	switch {
	case d.Ephemeral || d.Severity == "debug":
	case d.Severity == "error" || d.Severity == "warning":
		clean := diagnosticOf(d).Redact(r.redact)
		if clean.Withheld {
			r.withhold(at, clean.FormatWithheld())
		}
		r.show(at, clean.Format(), false)
	default:
		r.printPlain(at, d.Message)
	}
}

func (r *reader) printPlain(at time.Time, message string) {
	if text := strings.TrimSpace(colors.Never.Colorize(message)); text != "" {
		r.show(at, r.redact.Redact(text), r.redact.Withholds(text))
	}
}

// show passes on a redacted text, or a note that it is withheld.
func (r *reader) show(at time.Time, text string, withheld bool) {
	if withheld {
		r.withhold(at, text)
		text = "(" + redact.Withheld + ")"
	}
	r.output(redact.LogLine(at, text))
}

func (r *reader) withhold(at time.Time, text string) {
	if r.withheld != nil {
		r.withheld(redact.LogLine(at, text))
	}
}

func (r *reader) textOf(event apitype.EngineEvent) string {
	switch {
	case event.ResourcePreEvent != nil:
		return r.textOfStep(event.ResourcePreEvent.Metadata, "begun")
	case event.ResOutputsEvent != nil:
		return r.textOfResult(event.ResOutputsEvent.Metadata)
	case event.ResOpFailedEvent != nil:
		return r.textOfStep(event.ResOpFailedEvent.Metadata, "failed")
	case event.SummaryEvent != nil:
		return textOfSummary(event.SummaryEvent)
	}
	return ""
}

// textOfStep describes one step. A plan mentions each step once.
func (r *reader) textOfStep(m apitype.StepEventMetadata, how string) string {
	if internal(m) || m.Op == apitype.OpSame || m.Op == apitype.OpRefresh && how == "begun" {
		return ""
	}
	words := r.addressOf(m) + ": " + string(m.Op) + " " + how
	if r.preview && how == "begun" {
		words = r.addressOf(m) + ": " + string(m.Op) + " planned"
		if change := r.change(m, ""); change.Reason != "" {
			words += " (" + change.Reason + ")"
		}
	}
	return words
}

func (r *reader) textOfResult(m apitype.StepEventMetadata) string {
	switch {
	case internal(m):
	case m.Op == apitype.OpRefresh:
		switch action, differs := driftOf(m); {
		case !differs:
			return r.addressOf(m) + ": as it was"
		case action == engine.ActionDelete:
			return r.addressOf(m) + ": gone"
		}
		return r.addressOf(m) + ": changed since"
	case !r.preview:
		return r.textOfStep(m, "done")
	}
	return ""
}

func textOfSummary(s *apitype.SummaryEvent) string {
	var counts []string
	for _, op := range slices.Sorted(maps.Keys(s.ResourceChanges)) {
		counts = append(counts, fmt.Sprintf("%d %s", s.ResourceChanges[op], op))
	}
	if len(counts) == 0 {
		counts = []string{"nothing"}
	}
	what := "Done"
	if s.IsPreview {
		what = "Plan"
	}
	return what + ": " + strings.Join(counts, ", ")
}
