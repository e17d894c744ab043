package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
)

// probeVariable makes a process of this test one that tries something.
const probeVariable = "SANDBOX_PROBE"

func pid() string { return strconv.Itoa(os.Getpid()) }

func TestMain(m *testing.M) {
	if parentdeath.IsParent() {
		beParent()
		return
	}
	if os.Getenv(probeVariable) == "" {
		os.Exit(m.Run())
	}
	err := probe(os.Args[1], os.Args[2:])
	var failed syscall.Errno
	switch {
	case err == nil:
		fmt.Println("ok")
	case errors.As(err, &failed):
		fmt.Println(failed.Error())
	default:
		fmt.Println(err)
	}
	if os.Args[1] == "mark" {
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test has looked at it
	}
	os.Exit(0)
}

// beParent starts a confined process that is to die with this one.
func beParent() {
	s, err := New(Options{Mode: Preferred})
	if err != nil {
		fmt.Println(err)
		return
	}
	runtime.LockOSThread() // it dies with the thread that starts it
	child := exec.Command("sleep", "300")
	s.Wrap(child, Policy{})
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := child.Start(); err != nil {
		fmt.Println(err)
		return
	}
	for { // until it is no launcher any more
		if name, err := os.ReadFile("/proc/" + strconv.Itoa(child.Process.Pid) + "/comm"); err != nil || string(name) == "sleep\n" {
			break
		}
	}
	parentdeath.Print(child.Process.Pid)
	_ = child.Wait()
}

func probe(what string, arguments []string) error {
	switch what {
	case "read":
		_, err := os.ReadFile(arguments[0])
		return err
	case "niceness":
		raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
		return cmp.Or(err, fmt.Errorf("%d", 20-raw)) // as the system call counts
	case "open":
		file, err := os.Open(arguments[0])
		_ = file.Close()
		return err
	case "write":
		return os.WriteFile(arguments[0], []byte("new"), 0o600)
	case "list":
		_, err := os.ReadDir(arguments[0] + "/.")
		return err
	case "follow":
		_, err := os.Readlink(arguments[0])
		return err
	case "mark":
		return markedProbe(arguments[0])
	case "reattach":
		return reattach()
	case "status":
		return status()
	}
	target, err := strconv.Atoi(arguments[0])
	if err != nil {
		return err
	}
	if what == "signal" {
		return syscall.Kill(target, 0)
	}
	runtime.LockOSThread()
	if err := unix.PtraceSeize(target); err != nil {
		return err
	}
	return nil // it is let go when this process ends
}

// reattach fails unless the providers that run have the id of this process, and nothing else of them has changed.
func reattach() error {
	want := fmt.Sprintf(`{"a.example/b/c":{"Pid":%d,"Protocol":"grpc","ProtocolVersion":6,"Test":true}}`, os.Getpid())
	if got := os.Getenv(reattachVariable); got != want {
		return errors.New(got)
	}
	if order, there := os.LookupEnv(Variable); there {
		return errors.New(order)
	}
	return nil
}

// status prints what privileges a process has.
func status() error {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	var found []string
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "CapPrm", "CapEff", "CapAmb", "NoNewPrivs":
			found = append(found, name+":"+strings.TrimSpace(value))
		}
	}
	return errors.New(strings.Join(found, " "))
}
