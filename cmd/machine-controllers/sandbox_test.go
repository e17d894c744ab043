package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

func TestAnEmptiedWorkFolderEndsTheManager(t *testing.T) {
	work := t.TempDir()
	for _, name := range []string{"modules", "runs"} {
		if err := os.MkdirAll(filepath.Join(work, name, "content"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	check := newFolderCheck(work)
	remove(t, filepath.Join(work, "runs", "content")) // a run that has ended
	if err := check.alive(nil); err != nil {
		t.Errorf("alive: %v, want nil", err)
	}
	remove(t, filepath.Join(work, "modules"))
	if err := check.alive(nil); err == nil || !strings.Contains(err.Error(), "modules was removed while the manager ran; restart it") {
		t.Errorf("alive: %v, want what was removed", err)
	}
}

func TestReadyMeansThatEnginesCanRun(t *testing.T) {
	for name, change := range map[string]struct {
		to   func(t *testing.T, engine, work string)
		want string
	}{
		"nothing is wrong":     {func(*testing.T, string, string) {}, ""},
		"the engine is gone":   {func(t *testing.T, engine, _ string) { remove(t, engine) }, "an engine is missing"},
		"it cannot be started": {func(t *testing.T, engine, _ string) { chmod(t, engine, 0o600) }, "cannot execute engine"},
		"no folder to work in": {func(t *testing.T, _, work string) { remove(t, work) }, "--work-dir"},
	} {
		t.Run(name, func(t *testing.T) {
			work, engine := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "tofu")
			if err := os.Mkdir(work, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(engine, nil, 0o700); err != nil {
				t.Fatal(err)
			}
			now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			check := newEngineCheck(work, nil, engine)
			check.clock = now
			check.look()
			if err := check.ready(nil); err != nil {
				t.Fatal(err)
			}
			change.to(t, engine, work)
			if err := check.ready(nil); err != nil {
				t.Errorf("a probe looks at the disk: %v", err)
			}
			now.SetTime(now.Now().Add(2 * checkInterval))
			_ = check.ready(nil) // has the disk looked at
			for range 500 {
				if !check.isLooking() {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			var got string
			if err := check.ready(nil); err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, change.want) || got != "" && change.want == "" {
				t.Errorf("not ready because %q, want %q", got, change.want)
			}
		})
	}
}

func (c *engineCheck) isLooking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looking
}

func TestTheSandboxHasWhatTheFlagsName(t *testing.T) {
	given := t.TempDir()
	o := options{sandbox: sandbox.Preferred, workDir: t.TempDir(), sandboxRead: list{given}}
	for _, wide := range []string{"/", filepath.Dir(o.workDir)} {
		o.engineEnvironment = assignments{"CERTS": wide + ":" + given}
		o.sandboxRead = list{given, wide}
		if _, err := newSandbox(o); err == nil || !strings.Contains(err.Error(), "--sandbox-read") {
			t.Errorf("%s may be read: %v", wide, err)
		}
	}
	var mode sandbox.Mode
	if err := mode.Set("sometimes"); err == nil || !strings.Contains(err.Error(), "required") {
		t.Errorf("an unknown mode: %v, want an error with those that there are", err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
