package pulumi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/auto"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// maxText limits the CLI output that is kept besides events.
const maxText = 16 << 10

// command is the CLI as the Automation API calls it. It gives the CLI a clean environment and time
// to stop, and answers calls that need no process itself.
type command struct {
	binary      Binary
	environment []string
	waitDelay   time.Duration
	starts      *atomic.Int64
	sandbox     *sandbox.Sandbox
	policy      sandbox.Policy
	// pipe is the path of the pipe for events, and read reads them.
	pipe string
	read func(io.Reader)
	// pid is the running process, or zero.
	pid atomic.Int64
	// last is how the last process ended.
	last outcome
}

// outcome is how a process ended.
type outcome struct {
	started, signaled bool
	code              int
	text              string
	// failed is why it did not start.
	failed error
}

var _ auto.PulumiCommand = &command{}

// fixedOutputs are the outputs of commands that are not run. They only read what this package knows
// already, or change what it writes itself.
var fixedOutputs = map[string]string{"stack select": "", "stack output": "{}", "stack history": "[]"}

// Version implements auto.PulumiCommand.
func (c *command) Version() semver.Version { return c.binary.Version }

// Run implements auto.PulumiCommand.
func (c *command) Run(
	ctx context.Context, dir string, stdin io.Reader, outputs, errorOutputs []io.Writer, environment []string,
	args ...string,
) (stdout, stderr string, code int, err error) {
	if len(args) > 1 {
		if output, known := fixedOutputs[args[0]+" "+args[1]]; known {
			return output, "", 0, nil
		}
	}
	out, errs := &text{limit: maxText}, &text{limit: maxText}
	events, err := openPipe(c.pipe, c.read)
	if err != nil {
		c.last = outcome{code: -1, failed: err}
		return "", "", -1, err
	}
	process := exec.CommandContext(ctx, c.binary.Path,
		append([]string{"--non-interactive", "--event-log", c.pipe}, args...)...)
	process.Dir, process.Stdin = dir, stdin
	process.Env = append(append([]string{}, environment...), c.environment...)
	c.sandbox.Wrap(process, c.policy)
	process.Stdout, process.Stderr = io.MultiWriter(append(outputs, out)...), io.MultiWriter(append(errorOutputs, errs)...)
	err = c.execute(process)
	events.close()
	printed := errs.String()
	if err != nil {
		printed += out.String()
	}
	c.last = outcomeOf(process, printed, err)
	if err == nil {
		return out.String(), errs.String(), 0, nil
	}
	// The error of the process may contain its output, including secrets.
	return "", "", c.last.code, errors.New("pulumi failed")
}

// execute runs a process until it exits, stops it cleanly if ctx ends first, and kills leftover
// processes: a plugin may outlive a CLI that succeeded.
func (c *command) execute(process *exec.Cmd) error {
	runtime.LockOSThread() // the CLI dies with the thread that starts it
	defer runtime.UnlockOSThread()
	process.SysProcAttr = workdir.ChildAttributes()
	process.Cancel = func() error { return process.Process.Signal(os.Interrupt) }
	process.WaitDelay = c.waitDelay
	c.starts.Add(1)
	if err := process.Start(); err != nil {
		return err
	}
	c.pid.Store(int64(process.Process.Pid))
	err := process.Wait()
	c.pid.Store(0)
	workdir.KillGroup(process.Process)
	return err
}

func outcomeOf(process *exec.Cmd, text string, err error) outcome {
	if process.ProcessState == nil {
		return outcome{code: -1, text: text, failed: err}
	}
	status, _ := process.ProcessState.Sys().(syscall.WaitStatus)
	return outcome{started: true, signaled: status.Signaled(), code: process.ProcessState.ExitCode(), text: text}
}

// text keeps the beginning of what is written.
type text struct {
	bytes.Buffer
	limit int
}

// Write implements io.Writer. It never fails.
func (t *text) Write(p []byte) (int, error) {
	if room := t.limit - t.Len(); room > 0 {
		t.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// environmentOf returns the variables as name=value.
func environmentOf(variables map[string]string) []string {
	list := make([]string, 0, len(variables))
	for name, value := range variables {
		list = append(list, name+"="+value)
	}
	return list
}
