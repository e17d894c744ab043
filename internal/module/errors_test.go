package module

import (
	"testing"
	"time"
)

func TestSettle(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"":                            time.Minute,
		"    settleSeconds: 0\n":      0,
		"    settleSeconds: 3600\n":   time.Hour,
		"    settleSeconds: 90 # x\n": 90 * time.Second,
	} {
		if got := mustLoad(t, change{"module.yaml", "  lookup:\n", "  lookup:\n" + text}).Settle(); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	without := mustLoad(t, change{"module.yaml", "  lookup:\n    absent:\n      - 'no such instance'\n", ""}, change{"lookup/import.tf", "", ""})
	if got := without.Settle(); got != time.Minute {
		t.Errorf("without a lookup: %s", got)
	}
}

func TestFinal(t *testing.T) {
	final := change{"module.yaml", "  capacity:\n", "  errors:\n    final: ['InvalidSize: ', '(?i)no such \\w+ type']\n  capacity:\n"}
	loaded := mustLoad(t, final)
	restored, err := Restore(loaded.Files())
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
		if mustLoad(t).Final(text) {
			t.Errorf("%q ends a Machine of a module that lists no errors", text)
		}
	}
}
