package module_test

import (
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestSettle(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"":                            time.Minute,
		"    settleSeconds: 0\n":      0,
		"    settleSeconds: 3600\n":   time.Hour,
		"    settleSeconds: 90 # x\n": 90 * time.Second,
	} {
		if got := moduletest.Load(t, moduletest.Change{"module.yaml", "  lookup:\n", "  lookup:\n" + text}).Settle(); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	without := moduletest.Load(t, moduletest.Change{"module.yaml", "  lookup:\n    absent:\n      - 'no such instance'\n", ""}, moduletest.Change{"lookup/import.tf", "", ""})
	if got := without.Settle(); got != time.Minute {
		t.Errorf("without a lookup: %s", got)
	}
}

func TestFinal(t *testing.T) {
	final := moduletest.Change{"module.yaml", "  capacity:\n", "  errors:\n    final: ['InvalidSize: ', '(?i)no such \\w+ type']\n  capacity:\n"}
	loaded := moduletest.Load(t, final)
	restored, err := load.Restore(loaded.Files())
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"Error: creating: InvalidSize: 7":      true,
		"creating instance: No such flux type": true,
		"creating: Unavailable: try again":     false,
		"":                                     false,
	} {
		if loaded.Final(text) != want || restored.Final(text) != want {
			t.Errorf("%q: %t, and %t once restored; want %t", text, loaded.Final(text), restored.Final(text), want)
		}
		if moduletest.Load(t).Final(text) {
			t.Errorf("%q ends a Machine of a module that lists no errors", text)
		}
	}
}
