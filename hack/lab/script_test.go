package lab

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheScriptReplacesTheManager(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "it's a manager")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o700); err != nil {
		t.Fatal(err)
	}
	m := &Manager{Process: Process{What: "the manager", Log: filepath.Join(dir, "log")}, lab: &Lab{dir: dir}}
	if err := m.Start(program, []string{"60"}, []string{"ODD=a 'b'", "PATH=" + os.Getenv("PATH")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Kill() })
	if err := m.WriteScript(); err != nil {
		t.Fatal(err)
	}
	// As a developer would rebuild it.
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$1 $ODD $OTHER\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	readlink, err := exec.LookPath("readlink")
	if err := errors.Join(err, os.Symlink(readlink, filepath.Join(tools, "readlink"))); err != nil {
		t.Fatal(err)
	}
	run := func(environment ...string) (string, error) {
		command := exec.Command(m.lab.Script())
		command.Env = environment
		out, err := command.CombinedOutput()
		return string(out), err
	}
	out, err := run("DEBUG=1", "PATH="+tools)
	if err == nil || !strings.Contains(out, "go install github.com/go-delve/delve/cmd/dlv") || !m.Running() {
		t.Errorf("got %q, %v, want the manager to run on until Delve is installed", out, err)
	}
	out, err = run("DEBUG=", "OTHER=value", "PATH="+os.Getenv("PATH"))
	if want := "60 a 'b' \n"; err != nil || out != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
	if err := os.WriteFile(filepath.Join(tools, "dlv"), []byte("#!/bin/sh\necho \"$*\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err = run("DEBUG=1", "PATH="+tools+":"+os.Getenv("PATH"))
	if want := " " + program + " -- 60 --leader-elect=false\n"; err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("got %q, %v, want %q at the end", out, err, want)
	}
	select {
	case <-m.Ended():
	case <-time.After(10 * time.Second):
		t.Error("the manager that was started first still runs")
	}
	if err := m.During(t.Context(), func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		return ctx.Err()
	}); err != nil {
		t.Errorf("got %v, want the replaced manager not to end the demo", err)
	}
}

func TestTheEndOfTheManagerEndsTheDemo(t *testing.T) {
	dir := t.TempDir()
	m := &Manager{Process: Process{What: "the manager", Log: filepath.Join(dir, "log")}, lab: &Lab{dir: dir}}
	if err := m.Start("/bin/sh", []string{"-c", "exit 3"}, nil); err != nil {
		t.Fatal(err)
	}
	err := m.During(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if want := "the manager has ended: exit status 3; its log is " + filepath.Join(dir, "log"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	if err := m.During(interrupted, func(context.Context) error { return nil }); err != nil {
		t.Errorf("got %v, want an interrupt to be no error", err)
	}
}
