package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

func TestErrorText(t *testing.T) {
	quota := Diagnostic{Severity: SeverityError, Summary: "creating EC2 Instance:", Detail: "VcpuLimitExceeded:\n  You have requested too much"}
	cases := map[string]struct {
		err  *Error
		want string
	}{
		"summary and detail in one line": {
			err:  &Error{Op: OpApply, Class: Quota, Diagnostics: []Diagnostic{quota}},
			want: "applying: creating EC2 Instance: VcpuLimitExceeded: You have requested too much",
		},
		"the others are counted": {
			err:  &Error{Op: OpApply, Class: Quota, Diagnostics: []Diagnostic{quota, quota, quota}},
			want: "applying: creating EC2 Instance: VcpuLimitExceeded: You have requested too much (and 2 more)",
		},
		"a detail that repeats the summary": {
			err:  &Error{Op: OpPlan, Diagnostics: []Diagnostic{{Summary: "no such image", Detail: "Error: no such image: x"}}},
			want: "planning: Error: no such image: x",
		},
		"an interrupt": {
			err:  &Error{Op: OpDestroy, Class: Interrupted, Err: context.DeadlineExceeded, Diagnostics: []Diagnostic{quota}},
			want: "destroying was interrupted: context deadline exceeded",
		},
		"a kill": {
			err:  &Error{Op: OpApply, Class: Killed, Err: errors.New("the engine was ended by a signal")},
			want: "applying was killed, what it did is not known: the engine was ended by a signal",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.err.Error(); got != tc.want {
				t.Errorf("Error() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestErrorTextIsShort(t *testing.T) {
	err := &Error{Op: OpApply, Diagnostics: []Diagnostic{{Summary: strings.Repeat("ä", 5000)}}}
	if got := err.Error(); len(got) > redact.MaxMessage || !strings.HasSuffix(got, "...") {
		t.Errorf("Error() has %d bytes and ends with %q, want at most %d and a mark", len(got), got[len(got)-5:], redact.MaxMessage)
	}
}

func TestClassOf(t *testing.T) {
	cases := map[string]struct {
		err  error
		want Class
	}{
		"no error":                  {err: nil, want: ""},
		"an error of somebody else": {err: errors.New("x"), want: Unknown},
		"a wrapped error":           {err: fmt.Errorf("running: %w", &Error{Class: Quota}), want: Quota},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ClassOf(tc.err); got != tc.want {
				t.Errorf("ClassOf = %q, want %q", got, tc.want)
			}
		})
	}
}
