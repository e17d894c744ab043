package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

// eachWay runs a test in a sandbox, where attacks are denied, and without one, where they succeed.
func eachWay(t *testing.T, test func(t *testing.T, confined *sandbox.Sandbox)) {
	t.Run("confined", func(t *testing.T) { test(t, newSandbox(t)) })
	t.Run("not confined", func(t *testing.T) { test(t, nil) })
}

func newSandbox(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	confined, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred})
	if err != nil {
		t.Fatal(err)
	}
	if confined.ABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	return confined
}

// token creates a file like a service account's token.
func token(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cr3t"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// attacksOn returns the attacks of a hostile program; other is another run's folder.
func attacksOn(t *testing.T, confined *sandbox.Sandbox, other string) []attack {
	t.Helper()
	secret, manager, neighbour := token(t), strconv.Itoa(os.Getpid()), strconv.Itoa(anotherEngine(t, confined))
	attacks := []attack{
		{"the token", "read", secret},
		{"the token, by a link", "link", secret},
		{"the folder of the token", "list", filepath.Dir(secret)},
		{"another run's folder", "list", other},
		{"another run's folder, to change", "write", other},
		{"the folders of all runs", "list", filepath.Dir(other)},
		{"the manager's environment", "read", "/proc/" + manager + "/environ"},
		{"the manager's memory", "read", "/proc/" + manager + "/mem"},
		{"the manager's files", "follow", "/proc/" + manager + "/fd/0"},
		{"the manager's root", "list", "/proc/" + manager + "/root"},
		{"the manager, by tracing", "trace", manager},
		{"the passphrase of another run", "read", "/proc/" + neighbour + "/environ"},
		{"another run, by tracing", "trace", neighbour},
	}
	if confined == nil || confined.ABI() >= 6 {
		attacks = append(attacks, attack{"the manager's life", "signal", manager},
			attack{"another run's life", "signal", neighbour})
	}
	return attacks
}

// anotherEngine starts a process with a passphrase in its environment, like another run's.
func anotherEngine(t *testing.T, confined *sandbox.Sandbox) int {
	t.Helper()
	other := exec.Command("sleep", "600")
	other.Env = []string{"PULUMI_CONFIG_PASSPHRASE=s3cr3t"}
	confined.Wrap(other, sandbox.Policy{Write: []string{t.TempDir()}})
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait() // it was killed
	})
	for range 1000 { // until it has executed the program
		if name, err := os.ReadFile("/proc/" + strconv.Itoa(other.Process.Pid) + "/comm"); err == nil &&
			string(name) == "sleep\n" {
			return other.Process.Pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the other process does not start")
	return 0
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
