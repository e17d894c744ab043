package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

const pollInterval = 50 * time.Millisecond

// killDeadline bounds the wait after SIGKILL. Only a process stuck in the kernel exceeds it.
const killDeadline = 10 * time.Second

// identify returns the identity of a running process.
func identify(pid int) (process, error) {
	boot, err := bootID()
	if err != nil {
		return process{}, err
	}
	stat, err := readStat(pid)
	if err != nil {
		return process{}, err
	}
	return process{PID: pid, StartTicks: stat.Starttime, BootID: boot}, nil
}

// alive reports whether this very process still runs.
func (p process) alive() bool {
	if p.PID <= 0 {
		return false
	}
	stat, err := readStat(p.PID)
	if err != nil || stat.Starttime != p.StartTicks || dead(stat) {
		return false
	}
	boot, err := bootID()
	return err == nil && boot == p.BootID
}

// end sends SIGTERM, waits for grace, then sends SIGKILL. Ending an ended process is a no-op.
func (p process) end(ctx context.Context, grace time.Duration) error {
	// Take the handle before the check: it then refers to the checked process even if the pid is reused in between.
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return fmt.Errorf("finding process %d: %w", p.PID, err)
	}
	defer func() { _ = handle.Release() }()
	if !p.alive() {
		return nil
	}
	if err := signal(handle, syscall.SIGTERM); err != nil {
		return err
	}
	if gone, err := p.waitGone(ctx, grace); gone || err != nil {
		return err
	}
	if err := signal(handle, syscall.SIGKILL); err != nil {
		return err
	}
	gone, err := p.waitGone(ctx, killDeadline)
	if err == nil && !gone {
		err = fmt.Errorf("killing process %d: still there %s after SIGKILL; look for a stuck disk", p.PID, killDeadline)
	}
	return err
}

func signal(handle *os.Process, number syscall.Signal) error {
	if err := handle.Signal(number); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to process %d: %w", number, handle.Pid, err)
	}
	return nil
}

// waitGone waits until the process is gone or the time is over. The error is the context's.
func (p process) waitGone(ctx context.Context, atMost time.Duration) (bool, error) {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, atMost, true,
		func(context.Context) (bool, error) { return !p.alive(), nil })
	if err != nil && ctx.Err() != nil {
		return false, fmt.Errorf("waiting for process %d to stop: %w", p.PID, ctx.Err())
	}
	return err == nil, nil
}

// started is a process that this program started; exited receives its exit status.
type started struct {
	process
	exited <-chan error
}

// launch starts a binary in its own session, so that it outlives this program and its terminal. It replaces the log
// file and keeps the previous one beside it.
func launch(l layout, component Component, args []string) (started, error) {
	log, err := openLog(l, component)
	if err != nil {
		return started{}, err
	}
	command := exec.Command(l.binary(component), args...)
	command.Dir = l.home()
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.home()}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = errors.Join(command.Start(), log.Close())
	if command.Process == nil {
		return started{}, err
	}
	// The child is not reaped before Wait below, so its pid cannot be reused yet.
	identity, identifyErr := identify(command.Process.Pid)
	if err = errors.Join(err, identifyErr); err != nil {
		return started{}, errors.Join(err, command.Process.Kill(), command.Wait())
	}
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }() // ends with the child
	return started{process: identity, exited: exited}, nil
}

func openLog(l layout, component Component) (*os.File, error) {
	path := l.log(component)
	if err := os.Rename(path, l.previousLog(component)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("keeping the previous log: %w", err)
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return log, nil
}

// dead reports whether the process only waits to be reaped. A zombie main thread is not enough: until the other threads
// end, the process holds its ports and files.
func dead(s procfs.ProcStat) bool { return (s.State == "Z" || s.State == "X") && s.NumThreads <= 1 }

func readStat(pid int) (procfs.ProcStat, error) {
	found, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	return found.Stat()
}

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
