// Package parentdeath tests that a child process dies with its parent, no matter how the parent ends. The test binary
// runs itself again as the parent: call [IsParent] first in TestMain.
package parentdeath

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
)

// variable marks the parent process.
const variable = "TEST_PARENT_PROCESS"

// IsParent reports whether this process is the parent, which starts a child, calls [Print] with its process ID and
// waits.
func IsParent() bool { return os.Getenv(variable) != "" }

// Print prints the child's process ID.
func Print(pid int) { _, _ = os.Stdout.WriteString(strconv.Itoa(pid) + "\n") }

// Expect starts the parent, kills it, and fails the test if the child survives.
func Expect(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child to its parent")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), variable+"=1")
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
	_ = parent.Wait() // it was killed
	if Ends(child) {
		return
	}
	t.Errorf("child %d lives on without its parent", child)
	if process, err := os.FindProcess(child); err == nil {
		_ = process.Kill()
	}
}

// Ends reports whether a process ends within a few seconds. A zombie has ended.
func Ends(pid int) bool {
	for range 500 {
		if stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err != nil ||
			strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// Stop stops a process and waits until all its threads are stopped: the kernel stops each when it is next scheduled.
func Stop(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		stats, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat"))
		if err == nil && len(stats) > 0 && !slices.ContainsFunc(stats, runs) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d runs after SIGSTOP", pid)
		}
	}
}

// runs reports whether a thread is not stopped, from its stat file.
func runs(stat string) bool {
	content, err := os.ReadFile(stat)
	return err == nil && !strings.Contains(string(content), ") T ")
}
