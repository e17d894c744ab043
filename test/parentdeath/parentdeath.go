// Package parentdeath tests that a child process dies with the process that started it, however that ends. The test binary starts itself a
// second time as the parent: call [IsParent] first thing in TestMain.
package parentdeath

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// variable is set for a test binary that is the parent.
const variable = "TEST_PARENT_PROCESS"

// IsParent reports whether this process is the parent, which starts a child, prints its process id with [Print] and waits.
func IsParent() bool { return os.Getenv(variable) != "" }

// Print prints the process id of the child.
func Print(pid int) { _, _ = os.Stdout.WriteString(strconv.Itoa(pid) + "\n") }

// Expect starts the parent, kills it, and fails the test if the child lives on.
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
		if stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
