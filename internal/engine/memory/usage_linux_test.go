package memory

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// allocate is the environment variable by which the test program is a process that takes memory.
const allocate = "ALLOCATE_MIB"

func TestMain(m *testing.M) {
	if os.Getenv(allocate) == "" {
		os.Exit(m.Run())
	}
	// Not from Go's heap, of which the race detector keeps copies.
	taken, err := unix.Mmap(-1, 0, 64*mib, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(taken)
}

// takes starts a process in a folder that takes 64 MiB until the test ends.
func takes(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program)
	command.Dir, command.Env = dir, append(os.Environ(), allocate+"=64")
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

func TestUsageOfRealProcesses(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	takes(t, filepath.Join(dir, "runs", "a"))
	takes(t, filepath.Join(dir, "runs", "a", "module"))
	takes(t, filepath.Join(dir, "pulumi", "runs", "b", "program"))
	takes(t, filepath.Join(dir, "providers", "1"))
	takes(t, filepath.Join(dir+"-other", "runs", "c"))
	t.Cleanup(func() { _ = os.RemoveAll(dir + "-other") })
	got, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	within := func(what string, used, least, most int64) {
		if used < least*mib || used > most*mib {
			t.Errorf("%s takes %d MiB, want %d to %d", what, used/mib, least, most)
		}
	}
	within("run a, with two processes,", got.Runs["a"], 128, 250)
	within("run b", got.Runs["b"], 64, 125)
	within("what is shared", got.Shared, 64, 300)
	if len(got.Runs) != 2 {
		t.Errorf("the runs are %v", got.Runs)
	}
}
