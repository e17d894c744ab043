package pulumi

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// parentVariable has the test binary run a command as the CLI is run, to be killed meanwhile.
const parentVariable = "PULUMI_TEST_PARENT"

// beParent prints the command's id and waits for its end.
func beParent() {
	c := &command{starts: &atomic.Int64{}}
	go func() {
		for c.pid.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		_, _ = os.Stdout.WriteString(strconv.FormatInt(c.pid.Load(), 10) + "\n")
	}()
	_ = c.execute(exec.CommandContext(context.Background(), "sleep", "300"))
}

func TestTheCLIDiesWithItsManager(t *testing.T) {
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
	cli, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for range 500 {
		if stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cli), "stat")); err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	process, err := os.FindProcess(cli)
	if err == nil {
		_ = process.Kill()
	}
	t.Error("the CLI lives on without its manager")
}
