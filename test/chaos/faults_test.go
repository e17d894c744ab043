package chaos

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// started starts a process under another name in a folder.
func started(t *testing.T, name, folder string) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	if sleep, err = filepath.EvalSymlinks(sleep); err != nil {
		t.Fatal(err)
	}
	if filepath.Base(sleep) != "sleep" {
		t.Skipf("%s is many programs in one", sleep)
	}
	from, err := os.Open(sleep)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	binary := filepath.Join(t.TempDir(), name)
	to, err := os.OpenFile(binary, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "60")
	command.Dir = folder
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may be dead, which the test checks
		_ = command.Wait()
	})
	return command
}

func TestOnlyAProcessOfTheKindIsKilled(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{dir: folder}
	for i, name := range []string{"a", "b"} {
		w.replicas[i] = &replica{name: name, world: w}
		if err := os.MkdirAll(w.replicas[i].workDir(), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := started(t, "tofu", t.TempDir())
	provider := started(t, "terraform-provider-x", w.replicas[0].workDir())
	engine := started(t, "tofu", w.replicas[0].workDir())
	if err := killing("engine", observe.Process.Engine)(t.Context(), &round{world: w}, Step{Draw: 3}); err != nil {
		t.Fatal(err)
	}
	if err := engine.Wait(); err == nil || engine.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the engine: %v", err)
	}
	f := &Facts{}
	if err := w.processes(f); err != nil || len(f.Running) != 1 {
		t.Errorf("left are %v, %v", f.Running, err)
	}
	for name, other := range map[string]*exec.Cmd{"an engine elsewhere": elsewhere, "the provider": provider} {
		if err := other.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFullDiskIsFull(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a file system of its own needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(folder, "filler")
	if err := fill(filler); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "one more"), make([]byte, 1<<12),
		0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing to it: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "one more"), make([]byte, 1<<12), 0o600); err != nil {
		t.Errorf("once it is freed: %v", err)
	}
}
