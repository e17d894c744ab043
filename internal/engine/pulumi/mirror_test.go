package pulumi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
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

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

func receive(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatal("nothing is saved")
		return ""
	}
}

func TestMirrorSavesEachVersionAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "machine.json")
	saved := make(chan string)
	m := &mirror{dir: dir, name: filepath.Base(file), save: func(_ context.Context, c []byte) error { saved <- string(c); return nil }}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		m.follow(t.Context(), stop)
	}()
	for _, content := range []string{"one", "two", "three"} {
		replace(t, filepath.Join(dir, "other.json"), "x")
		replace(t, file, content)
		if got := receive(t, saved); got != content {
			t.Errorf("%q is saved, want %q", got, content)
		}
		replace(t, file, content)
	}
	close(stop)
	<-stopped
}

func TestMirrorTriesAgainWhatWasNotSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.json")
	failing := errors.New("no API server")
	var saved []string
	m := &mirror{dir: filepath.Dir(file), name: filepath.Base(file), save: func(_ context.Context, c []byte) error {
		if failing != nil {
			return failing
		}
		saved = append(saved, string(c))
		return nil
	}}
	replace(t, file, "one")
	if err := m.sync(t.Context()); !errors.Is(err, failing) {
		t.Errorf("look() = %v, want the error of the save", err)
	}
	failing = nil
	for range 2 {
		if err := m.sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"one"}, saved); diff != "" {
		t.Errorf("what was saved differs (-want +got):\n%s", diff)
	}
}

// TestMirrorTriesAgainWhileNothingNewComes: a step may take an hour, and the checkpoint from before it records that it has begun.
func TestMirrorTriesAgainWhileNothingNewComes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "machine.json")
	saved, tried := make(chan string), 0
	m := &mirror{dir: dir, name: filepath.Base(file), failed: func(error) {}, save: func(_ context.Context, c []byte) error {
		if tried++; tried == 1 {
			return errors.New("no API server")
		}
		saved <- string(c)
		return nil
	}}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		m.follow(t.Context(), stop)
	}()
	replace(t, file, "one")
	if got := receive(t, saved); got != "one" {
		t.Errorf("%q is saved, want what could not be saved before", got)
	}
	close(stop)
	<-stopped
}

// written has a script write a checkpoint as Pulumi does.
const written = `cat > ../new.json <<'END'
{"version":3,"checkpoint":{"latest":{"resources":[]}}}
END
mv ../new.json ../backend/.pulumi/stacks/acme/machine.json
`

func TestACheckpointThatIsCutOffIsNotKept(t *testing.T) {
	whole := `{"version":3,"checkpoint":{"latest":{"resources":[]}}}`
	for name, left := range map[string]string{
		"empty": "", "its first byte": whole[:1], "half": whole[:len(whole)/2], "all but its last byte": whole[:len(whole)-1], "no checkpoint": "{}",
	} {
		t.Run(name, func(t *testing.T) {
			e := newIdle(t, `printf '%s' '`+left+`' > ../backend/.pulumi/stacks/acme/machine.json; exit 1`)
			workspace := openIdle(t, e)
			if _, err := workspace.Apply(t.Context()); failure.ClassOf(err) != failure.StateNotSaved {
				t.Errorf("Apply() = %v (%s), want that the state was not saved", err, failure.ClassOf(err))
			}
			if unsaved := workspace.Unsaved(); unsaved != nil {
				t.Errorf("%q is to be saved, want nothing", unsaved)
			}
			if found, err := readAbandonedRun(workspace.dir); err != nil || found.Checkpoint != nil {
				t.Errorf("the next process finds %q, %v, want no checkpoint", found.Checkpoint, err)
			}
		})
	}
}

// unwritten has a script leave a checkpoint with a create that has begun.
const unwritten = `cat > ../new.json <<'END'
{"version":3,"checkpoint":{"latest":{"resources":[],"pending_operations":[{"type":"creating","resource":{"urn":"urn:pulumi:machine::acme::acme:index:Server::this","custom":true,"type":"acme:index:Server"}}]}}}
END
mv ../new.json ../backend/.pulumi/stacks/acme/machine.json
`

func TestACreateThatCouldNotBeWrittenIsInDoubt(t *testing.T) {
	e := newIdle(t, unwritten+"exit 1")
	workspace := openIdle(t, e)
	if _, err := workspace.Apply(t.Context()); failure.ClassOf(err) != failure.Killed {
		t.Errorf("Apply() = %v (%s), want that the outcome is not known", err, failure.ClassOf(err))
	}
	// What an earlier run has begun is not this one's.
	if _, err := workspace.Destroy(t.Context()); failure.ClassOf(err) == failure.Killed {
		t.Errorf("Destroy() = %v, want its own failure", err)
	}
}

func TestWhatCouldNotBeSavedIsSavedByTheNextOperation(t *testing.T) {
	e := newIdle(t, `[ -e ../done ] || { `+written+` touch ../done; }; exit 0`)
	failing := true
	var saved []byte
	workspace := openIdle(t, e, func(r *RunSpec) {
		r.Save = func(_ context.Context, c []byte) error {
			if failing {
				return errors.New("fenced off")
			}
			saved = c
			return nil
		}
	})
	if _, err := workspace.Apply(t.Context()); failure.ClassOf(err) != failure.StateNotSaved || workspace.Unsaved() == nil {
		t.Fatalf("Apply() = %v, want a checkpoint that was not saved", err)
	}
	failing = false
	if _, err := workspace.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if saved == nil || workspace.Unsaved() != nil {
		t.Errorf("saved is %s, and %s is not, want it saved although nothing new was written", saved, workspace.Unsaved())
	}
}
