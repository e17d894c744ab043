package workdir_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
)

func TestMain(m *testing.M) {
	if parentdeath.IsParent() {
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
	parentdeath.Print(child.Process.Pid)
	child.Wait() //nolint:errcheck // it is killed
}

func TestAChildDiesWithItsParent(t *testing.T) { parentdeath.Expect(t) }

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

	interrupted, err := workdir.InterruptManaged(work, func(pid int) bool { return pid == second.Process.Pid })
	if err != nil || !slices.Contains(interrupted, first.Process.Pid) || slices.Contains(interrupted, second.Process.Pid) {
		t.Errorf("interrupted %v, %v; want %d and not %d, which is to be spared", interrupted, err, first.Process.Pid, second.Process.Pid)
	}
	if !parentdeath.Ends(first.Process.Pid) {
		t.Error("the interrupt ended nothing")
	}
	if _, err := workdir.InterruptManaged(work); err != nil {
		t.Fatal(err)
	}
	left, err := workdir.Processes(work)
	if err != nil || !slices.Contains(left, second.Process.Pid) || slices.Contains(left, other.Process.Pid) {
		t.Errorf("found %v, %v; want %d, which ignores interrupts, and not %d, which is elsewhere", left, err, second.Process.Pid, other.Process.Pid)
	}
	if killed, err := workdir.KillProcesses(work); err != nil || killed == 0 {
		t.Errorf("killed %d, %v", killed, err)
	}
	if !parentdeath.Ends(second.Process.Pid) {
		t.Error("the kill ended nothing")
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process beside the work folder: %v", err)
	}
}
