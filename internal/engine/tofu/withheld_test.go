package tofu

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

func TestWhatRepeatsSensitiveInputsIsWithheldFromTheOutput(t *testing.T) {
	var shown, withheld []string
	s := newStream(redact.New([]string{`{"tenant":"s3cr3t","pin":1234}`}).About([]string{"user_data"}), nil)
	s.output = func(text string) { shown = append(shown, text) }
	s.withheld = func(text string) { withheld = append(withheld, text) }
	for _, line := range []string{
		`{"@level":"info","@message":"x.this: Creating...","type":"apply_start"}`,
		`{"@level":"error","@message":"Error: got map","type":"diagnostic","diagnostic":{"severity":"error","summary":"got map[pin:1234 tenant:s3cr3t]","detail":"","address":"x.this"}}`,
		`panic: map[pin:1234]`,
		`the end of it`,
	} {
		if _, err := s.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	report := s.finish()
	if all := strings.Join(shown, "\n"); strings.Contains(all, "1234") || !strings.Contains(all, "Creating...") || strings.Count(all, redact.Withheld) != 2 || !strings.Contains(all, "the end of it") {
		t.Errorf("the output is\n%s", all)
	}
	if all := strings.Join(withheld, "\n"); strings.Count(all, "1234") != 2 || strings.Contains(all, "s3cr3t") || !strings.Contains(all, "with x.this") {
		t.Errorf("withheld is\n%s", all)
	}
	if !report.TextWithheld || len(report.Errors()) != 1 || !report.Errors()[0].Withheld {
		t.Errorf("the report is %+v", report)
	}
}
