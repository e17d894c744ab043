package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
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
			err:  &Error{Op: OpApply, Class: Killed, Err: errors.New("the engine was killed by a signal")},
			want: "applying was killed; its changes are unknown: the engine was killed by a signal",
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

func TestHint(t *testing.T) {
	plain, failed := errors.New("x"), &Error{Op: OpApply, Class: Quota, Hint: "of the engine"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"no error":                       {nil, ""},
		"an error without a hint":        {plain, ""},
		"an empty hint":                  {WithHint(plain, ""), ""},
		"a hint":                         {WithHint(plain, "first"), "first"},
		"a wrapped hint":                 {fmt.Errorf("running: %w", WithHint(plain, "first")), "first"},
		"the engine's hint":              {fmt.Errorf("running: %w", failed), "of the engine"},
		"a hint on top of the engine's":  {WithHint(failed, "first"), "first"},
		"an empty hint keeps an earlier": {WithHint(failed, ""), "of the engine"},
		"the outer one of two":           {WithHint(WithHint(plain, "inner"), "outer"), "outer"},
		"a hint beside an error":         {errors.Join(plain, WithHint(plain, "first")), "first"},
		"an engine's error without one":  {&Error{Op: OpPlan}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Hint(tc.err); got != tc.want {
				t.Errorf("Hint = %q, want %q", got, tc.want)
			}
		})
	}
	hinted := WithHint(failed, "first")
	if hinted.Error() != failed.Error() || ClassOf(hinted) != Quota || !errors.Is(hinted, failed) {
		t.Errorf("got %v of class %s, want the same text, class and chain as without the hint", hinted, ClassOf(hinted))
	}
}

// TestRunsOfABatchShareAnError needs the race detector to fail on a WithHint that writes to its error.
func TestRunsOfABatchShareAnError(t *testing.T) {
	shared := &Error{Op: OpApply, Class: Quota, Diagnostics: []Diagnostic{{Severity: SeverityError, Summary: "Quota exceeded"}}}
	before := shared.Error()
	var group sync.WaitGroup
	for _, hint := range []string{"of one module", "of another module"} {
		group.Go(func() {
			for range 100 {
				if got := Hint(WithHint(shared, hint)); got != hint {
					t.Errorf("Hint = %q, want %q", got, hint)
				}
			}
		})
	}
	group.Wait()
	if shared.Hint != "" || shared.Error() != before {
		t.Errorf("got %q with the hint %q, want the error as it was", shared, shared.Hint)
	}
}

func TestTextsThatRepeatSensitiveInputsAreWithheld(t *testing.T) {
	redactor := redact.New([]string{`{"tenant":"s3cr3t","pin":1234}`}).About([]string{"user_data"})
	for name, tc := range map[string]struct {
		diagnostic Diagnostic
		withheld   bool
	}{
		"a map as Go prints it": {Diagnostic{Summary: "Expected a string, got map[pin:1234]"}, true},
		"an argument that is made of sensitive input": {
			Diagnostic{Summary: "invalid value", Detail: "1234 is wrong", File: "main.tf", Snippet: "  user_data = var.user_data"}, true,
		},
		"an expression with a sensitive value": {
			Diagnostic{Summary: "Error in function call", File: "main.tf", Snippet: "x = f(local.y)", Values: []string{"local.y has a sensitive value"}}, true,
		},
		"the module's own words about the input": {
			Diagnostic{Summary: "Invalid value for variable", Detail: "user data has at most 16 KiB", File: "variables.tf", Snippet: `variable "user_data" {`, Values: []string{"var.user_data has a sensitive value"}}, false,
		},
		"the infrastructure's": {Diagnostic{Summary: "creating EC2 Instance: VcpuLimitExceeded", Address: "aws_instance.this"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.diagnostic.Severity = SeverityError
			clean := tc.diagnostic.Redact(redactor)
			if clean.Withheld != tc.withheld {
				t.Fatalf("withheld: %t, want %t", clean.Withheld, tc.withheld)
			}
			err := &Error{Op: OpPlan, Class: Unknown, Diagnostics: []Diagnostic{clean}}
			for what, text := range map[string]string{"the error": err.Error(), "the output": clean.Format(), "the reason": clean.Reason()} {
				if hidden := strings.Contains(text, "withheld") && !strings.Contains(text, "1234"); hidden != tc.withheld {
					t.Errorf("%s is %q", what, text)
				}
			}
			if err.Withheld() != tc.withheld || strings.Contains(clean.FormatWithheld(), "withheld") {
				t.Errorf("of the error: %t, for those who may read it: %q", err.Withheld(), clean.FormatWithheld())
			}
		})
	}
	text := (&Error{Op: OpPlan, Class: Quota, Diagnostics: []Diagnostic{{Summary: "x", Address: "a.this", Withheld: true}}}).Error()
	if want := "planning: an error about a.this: the text is withheld because it may contain values of sensitive inputs (class Quota)"; text != want {
		t.Errorf("Error() = %q, want %q", text, want)
	}
}

func TestWorkFolderFull(t *testing.T) {
	of := func(text string) error {
		return &Error{Op: OpApply, Diagnostics: []Diagnostic{{Summary: "first"}, {Summary: "Error", Detail: text}}}
	}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"an engine or provider cannot write":   {of("open /runs/x: no space left on device"), true},
		"it has reached the quota of the disk": {of("write /runs/x: disk quota exceeded"), true},
		"a text of a run elsewhere":            {errors.New("the run failed: mkdir /runs/x: no space left on device"), true},
		"the manager cannot write":             {fmt.Errorf("writing: %w", syscall.ENOSPC), true},
		"the hypervisor's disk":                {of("cannot extend file '/images/vm.qcow2': No space left on device"), false},
		"the quota of a project":               {of("Quota exceeded for instances"), false},
		"nothing":                              {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WorkFolderFull(tc.err); got != tc.want {
				t.Errorf("WorkFolderFull(%v) = %t, want %t", tc.err, got, tc.want)
			}
		})
	}
}
