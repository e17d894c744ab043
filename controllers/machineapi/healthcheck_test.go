package machineapi_test

import (
	"testing"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

func TestQuantities(t *testing.T) {
	const none = -1
	for name, tc := range map[string]struct {
		text  string
		total int
		// wantOf is the quantity of the total, and none for text that cannot be parsed.
		wantOf    int
		wantLimit int
		wantOK    bool
	}{
		"a number":                           {"3", 10, 3, 3, true},
		"a number above the total":           {"1000", 10, 1000, 1000, true},
		"zero":                               {"0", 10, 0, 1, false},
		"a negative number":                  {"-2", 10, 0, 1, false},
		"a percentage":                       {"30%", 10, 3, 3, true},
		"a percentage that is rounded down":  {"39%", 10, 3, 3, true},
		"a percentage that is less than one": {"10%", 5, 0, 1, true},
		"a percentage of nothing":            {"10%", 0, 0, 1, true},
		"zero percent":                       {"0%", 10, 0, 1, false},
		"all":                                {"100%", 10, 10, 10, true},
		"more than all":                      {"101%", 10, 10, 1, false},
		"a negative percentage":              {"-40%", 10, 0, 1, false},
		"a word":                             {"few", 10, none, 1, false},
		"an empty string":                    {"", 10, none, 1, false},
		"a percent sign":                     {"%", 10, none, 1, false},
		"two percent signs":                  {"40%%", 10, none, 1, false},
		"a fraction":                         {"1.5", 10, none, 1, false},
		"trailing space":                     {"2 ", 10, none, 1, false},
		"a number that overflows":            {"99999999999999999999", 10, none, 1, false},
		"a percentage that overflows":        {"99999999999999999999%", 10, none, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := none
			if quantity, err := machineapi.ParseQuantity(tc.text); err == nil {
				got = quantity.Of(tc.total)
			}
			if got != tc.wantOf {
				t.Errorf("got %d of %d, want %d", got, tc.total, tc.wantOf)
			}
			limit, ok := machineapi.RemediationLimit(map[string]string{machineapi.InFlightAnnotation: tc.text}, tc.total)
			if limit != tc.wantLimit || ok != tc.wantOK {
				t.Errorf("got limit %d, %t; want %d, %t", limit, ok, tc.wantLimit, tc.wantOK)
			}
		})
	}
	if limit, ok := machineapi.RemediationLimit(nil, 10); limit != machineapi.NoLimit || !ok {
		t.Errorf("without the annotation: got %d, %t", limit, ok)
	}
}

func TestExemptsStarting(t *testing.T) {
	for value, want := range map[string][2]bool{"true": {true, true}, "false": {false, true}, "yes": {false, false}, "": {false, false}} {
		exempts, ok := machineapi.ExemptsStarting(map[string]string{machineapi.ExemptAnnotation: value})
		if got := [2]bool{exempts, ok}; got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
	if exempts, ok := machineapi.ExemptsStarting(nil); exempts || !ok {
		t.Errorf("without the annotation: got %t, %t", exempts, ok)
	}
}
