package pulumi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

func TestTheOutputOfPulumiIsPassedOn(t *testing.T) {
	diagnostic := func(d apitype.DiagnosticEvent) apitype.EngineEvent { return apitype.EngineEvent{DiagnosticEvent: &d} }
	withKeys := pre(apitype.OpUpdate)
	withKeys.ResourcePreEvent.Metadata.Diffs = []string{"size", "hunter22"}
	failed := apitype.EngineEvent{ResOpFailedEvent: &apitype.ResOpFailedEvent{Metadata: step(apitype.OpCreate, urnThis, "acme:index:Server")}}
	cases := map[string]struct {
		event   apitype.EngineEvent
		preview bool
		want    string
	}{
		"a step that begins":                              {event: pre(apitype.OpCreate), want: thisAddress + ": create begun"},
		"one that ends":                                   {event: outputs(apitype.OpCreate), want: thisAddress + ": create done"},
		"one that fails":                                  {event: failed, want: thisAddress + ": create failed"},
		"one of a plan, with what differs":                {event: withKeys, preview: true, want: thisAddress + ": update planned (size, (sensitive))"},
		"one of a plan ends at once, so it is shown once": {event: outputs(apitype.OpUpdate), preview: true},
		"a step that does nothing":                        {event: pre(apitype.OpSame)},
		"what is Pulumi's own":                            {event: providerPre(apitype.OpCreate)},
		"a refresh that finds what was there":             {event: refreshed(map[string]any{"size": "small"}), want: thisAddress + ": as it was"},
		"a refresh that finds something else":             {event: refreshed(map[string]any{"size": "big"}), want: thisAddress + ": changed since"},
		"a refresh that finds nothing":                    {event: refreshed(nil), want: thisAddress + ": gone"},
		"an error with all that is known of it":           {event: diagnosticError("no room\nhunter22 said so"), want: "Error: no room\n    with this\n    (sensitive) said so"},
		"a warning":                                       {event: diagnostic(apitype.DiagnosticEvent{Severity: "warning", Message: "old"}), want: "Warning: old"},
		"what a provider has to say":                      {event: diagnostic(apitype.DiagnosticEvent{Severity: "info", Message: "<{%fg 1%}>waiting for hunter22<{%reset%}>\n"}), want: "waiting for (sensitive)"},
		"what is for developers":                          {event: diagnostic(apitype.DiagnosticEvent{Severity: "debug", Message: "{}"})},
		"what shows only for a moment":                    {event: diagnostic(apitype.DiagnosticEvent{Severity: "info", Message: "...", Ephemeral: true})},
		"what was done":                                   {event: summary(map[apitype.OpType]int{"same": 1, "create": 2}), want: "Done: 2 create, 1 same"},
		"what is to be done":                              {event: apitype.EngineEvent{SummaryEvent: &apitype.SummaryEvent{IsPreview: true}}, preview: true, want: "Plan: nothing"},
		"a message without an end":                        {event: diagnosticError(strings.Repeat("x", 9<<10)), want: "Error: " + strings.Repeat("x", 8<<10-len("2026-03-01T12:00:00Z Error: ...")) + "..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got string
			read := newReader(redact.New([]string{"hunter22"}), nil, tc.preview)
			read.output = func(text string) { got += text }
			tc.event.Timestamp = 1772366400
			read.take(tc.event)
			want := tc.want
			if want != "" {
				want = "2026-03-01T12:00:00Z " + want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the output (-want +got):\n%s", diff)
			}
		})
	}
}
