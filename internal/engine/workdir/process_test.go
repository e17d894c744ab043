package workdir_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// parentVariable has the test binary start a child and wait, to be killed.
const parentVariable = "ENGINE_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		beParent()
		return
	}
	os.Exit(m.Run())
}

// beParent starts a child as engines are started, prints its id, and waits.
func beParent() {
	runtime.LockOSThread()
	child := exec.Command("sleep", "300")
	child.SysProcAttr = workdir.ChildAttributes()
	if err := child.Start(); err != nil {
		_, _ = os.Stdout.WriteString(err.Error() + "\n")
		return
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(child.Process.Pid) + "\n")
	child.Wait() //nolint:errcheck // it is killed
}

func TestAChildDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child to its parent")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("starting the child: %s", line)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait() //nolint:errcheck // it was killed
	if !goes(child) {
		t.Errorf("child %d lives on without its parent", child)
	}
}

// start runs a shell in a folder; ready when it has printed a line.
func start(t *testing.T, dir, script string) *exec.Cmd {
	t.Helper()
	process := exec.Command("sh", "-c", script)
	process.Dir = dir
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill() //nolint:errcheck // it may be gone
		process.Wait()         //nolint:errcheck // it may have been killed
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return process
}

// goes reports whether a process ends within a few seconds. One that is a zombie has ended.
func goes(pid int) bool {
	for range 500 {
		if stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestProcessesAreFoundByTheirFolder(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inside, beside := filepath.Join(dir, "work", "run"), filepath.Join(dir, "workshop")
	for _, path := range []string{inside, beside} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const polite, stubborn = "echo; exec sleep 300", "trap '' INT; echo; sleep 300 & wait; sleep 300"
	first, second, other := start(t, inside, polite), start(t, inside, stubborn), start(t, beside, polite)
	work := filepath.Join(dir, "work")

	interrupted, err := workdir.InterruptProcesses(work, func(pid int) bool { return pid == second.Process.Pid })
	if err != nil || !slices.Contains(interrupted, first.Process.Pid) || slices.Contains(interrupted, second.Process.Pid) {
		t.Errorf("interrupted %v, %v; want %d and not %d, which is to be spared", interrupted, err, first.Process.Pid, second.Process.Pid)
	}
	if !goes(first.Process.Pid) {
		t.Error("the interrupt ended nothing")
	}
	if _, err := workdir.InterruptProcesses(work); err != nil {
		t.Fatal(err)
	}
	left, err := workdir.Processes(work)
	if err != nil || !slices.Contains(left, second.Process.Pid) || slices.Contains(left, other.Process.Pid) {
		t.Errorf("found %v, %v; want %d, which ignores interrupts, and not %d, which is elsewhere", left, err, second.Process.Pid, other.Process.Pid)
	}
	if killed, err := workdir.KillProcesses(work); err != nil || killed == 0 {
		t.Errorf("killed %d, %v", killed, err)
	}
	if !goes(second.Process.Pid) {
		t.Error("the kill ended nothing")
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process beside the work folder: %v", err)
	}
}
