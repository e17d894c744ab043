package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestARecordGoesOnWhereItWasInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	first, err := OpenRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	failed := Outcome{Plan: Plan{Seed: 2}, Took: time.Second, Injected: []Kind{killEngine},
		Violations: []Violation{{Doubled, "two servers"}}}
	for _, outcome := range []Outcome{{Plan: Plan{Seed: 1}, Took: time.Second}, failed} {
		if err := first.Add(outcome, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	second, err := OpenRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Passed(1) || second.Passed(2) || second.Passed(3) {
		t.Error("want only the seed that has passed not to be played again")
	}
	if got := second.Tally(); got.Rounds != 2 || got.Passed != 1 || got.Harms[Doubled] != 1 ||
		got.Injected[killEngine] != 1 {
		t.Errorf("want both rounds, got %+v", got)
	}
	failed.Violations = nil
	if err := second.Add(failed, "v2"); err != nil {
		t.Fatal(err)
	}
	third, err := OpenRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	table := third.Tally().Table()
	for _, line := range []string{
		"2 rounds, 2 passed", "Version v1 of the manager: 1.", "Version v2 of the manager: 1.",
	} {
		if !strings.Contains(table, line) {
			t.Errorf("want %q in\n%s", line, table)
		}
	}
}

func TestARecordThatWasEditedNamesItsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(path, []byte("{\"seed\":1}\nseed 2 ok\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRecord(path); err == nil || !strings.Contains(err.Error(), path+":2 ") {
		t.Errorf("want the line that is no result, got %v", err)
	}
}
