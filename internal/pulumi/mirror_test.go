package pulumi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// replace writes as Pulumi does: whole, and under the same name.
func replace(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func TestMirrorSavesEachVersionOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.json")
	var saved []string
	m := &mirror{file: file, save: func(_ context.Context, c []byte) error { saved = append(saved, string(c)); return nil }}
	if m.changed() {
		t.Error("a file that is not there has changed")
	}
	for _, content := range []string{"one", "two", "two", "three"} {
		replace(t, file, content)
		if !m.changed() {
			t.Errorf("%s: not noticed", content)
		}
		if err := m.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m.changed() {
			t.Errorf("%s: noticed twice", content)
		}
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, saved); diff != "" {
		t.Errorf("what was saved differs (-want +got):\n%s", diff)
	}
}

func TestMirrorTriesAgainWhatWasNotSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.json")
	failing := errors.New("no API server")
	var saved []string
	m := &mirror{file: file, save: func(_ context.Context, c []byte) error {
		if failing != nil {
			return failing
		}
		saved = append(saved, string(c))
		return nil
	}}
	replace(t, file, "one")
	if err := m.look(t.Context()); !errors.Is(err, failing) {
		t.Errorf("look() = %v, want the error of the save", err)
	}
	failing = nil
	if err := m.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one"}, saved); diff != "" {
		t.Errorf("what was saved differs (-want +got):\n%s", diff)
	}
}
