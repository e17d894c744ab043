package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

func TestEncryptedStatesAreReadAndImportedWithTheirKey(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(strings.Repeat("k", 40)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := state.ReadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	manager, withKey := " --manager-namespace "+w.namespace, " --state-key-file "+file
	folder := filepath.Join(t.TempDir(), "backup")
	w.expect(t, "state export --all -o "+folder+manager, 0, "3 states and 1 module written")
	kept := w.get(t, "kept").UID
	w.lose(t)
	w.expect(t, "state import "+folder+manager+withKey, 0, "Imported")

	encrypted := state.New(w.Client, state.Options{Keys: keys})
	if outdated, err := encrypted.Outdated(t.Context(), state.KeyFor(w.namespace, kept)); err != nil || outdated {
		t.Errorf("the import has not encrypted the state: %v", err)
	}
	const lost = "it is encrypted, and there is no key: set --state-key-file"
	for _, line := range []string{"state pull kept", "state show kept", "logs kept", "state export kept -o " + filepath.Join(t.TempDir(), "none") + manager, "pulumi-key list"} {
		w.expect(t, line, 1, lost)
	}
	w.expect(t, "state import "+folder+manager, 1, lost)
	w.expect(t, "state pull kept --state-key-file /none", 1, "--state-key-file: reading the key of states: stat /none")
	if got := w.ask(t, "state pull kept"+withKey); got.code != 0 || !strings.Contains(got.out, "very-secret") {
		t.Errorf("state pull: %+v", got)
	}
	w.expect(t, "state show kept"+withKey, 0, "t.this")
	w.expect(t, "pulumi-key list"+withKey, 0, "1")
	w.expect(t, "state export --all -o "+filepath.Join(t.TempDir(), "again")+manager+withKey, 0, "3 states and 1 module written")
	w.expect(t, "state import "+folder+manager+withKey, 0, "") // it is there already
}
