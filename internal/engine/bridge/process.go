package bridge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// startTimeout limits the wait for a bridge to become ready.
const startTimeout = 30 * time.Second

// process is a running bridge with the provider that it has started. Its configuration is global,
// so it serves one connection at a time.
type process struct {
	dir        string
	command    *exec.Cmd
	connection *grpc.ClientConn
	exited     chan struct{} // closed when it has exited with its child processes
	left       error         // why child processes are left
	once       sync.Once
	// parameterized is the response to the request that made it the bridge to one provider, or nil
	// before.
	parameterized []byte
}

var _ provider.Running = &process{}

// starter starts bridges for a pool. They can read their own file and what read names, and write to
// their folders.
func starter(confined *sandbox.Sandbox, read []string) provider.Starter {
	return func(dir, file string, environment map[string]string) (provider.Running, error) {
		if err := confined.Check(); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("starting the bridge %s: %w", filepath.Base(file), err)
		}
		p := &process{dir: dir, command: exec.Command(file), exited: make(chan struct{})}
		p.command.Dir, p.command.SysProcAttr = dir, workdir.ChildAttributes()
		p.command.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PULUMI_HOME=" + dir}
		for name, value := range environment {
			p.command.Env = append(p.command.Env, name+"="+value)
		}
		confined.Wrap(p.command, sandbox.Policy{Read: append([]string{filepath.Dir(file)}, read...), Write: []string{dir}})
		if err := p.begin(); err != nil {
			return nil, errors.Join(fmt.Errorf("starting the bridge %s: %w", filepath.Base(file), err), p.End())
		}
		return p, nil
	}
}

// begin starts the process and connects to the address that it prints.
func (p *process) begin() error {
	out, err := p.command.StdoutPipe()
	if err == nil {
		err = p.launch()
	}
	if err != nil {
		close(p.exited)
		return err
	}
	printed := make(chan string, 1)
	go func() {
		read := bufio.NewReader(out)
		line, _ := read.ReadString('\n') // anything but a port is reported
		printed <- line
		_, _ = io.Copy(io.Discard, read) // the writer must not block
	}()
	select {
	case line := <-printed:
		port, err := strconv.ParseUint(strings.TrimSpace(line), 10, 16)
		if err != nil {
			return errors.New("the bridge does not print its port")
		}
		p.connection, err = dial(fmt.Sprintf("127.0.0.1:%d", port))
		return err
	case <-time.After(startTimeout):
		return fmt.Errorf("the bridge is not ready after %s", startTimeout)
	}
}

// launch starts the process on a thread that lives as long as the process, which dies with the
// thread that starts it.
func (p *process) launch() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait() // the result does not matter
			// A bridge that was killed leaves its provider running.
			_, p.left = workdir.KillProcesses(p.dir)
			close(p.exited)
		}
	}()
	return <-started
}

// Responds implements provider.Running.
func (p *process) Responds(ctx context.Context) error {
	return provider.Healthy(ctx, p.connection, "")
}

// Size implements provider.Running. It includes the provider.
func (p *process) Size() provider.Size {
	size := provider.SizeOf(p.command.Process.Pid)
	others, err := workdir.Processes(p.dir, func(pid int) bool { return pid == p.command.Process.Pid })
	if err != nil {
		return size
	}
	for _, pid := range others {
		other := provider.SizeOf(pid)
		size.Memory, size.Files = size.Memory+other.Memory, size.Files+other.Files
	}
	size.Processes = max(0, len(others)-1)
	return size
}

// Exited implements provider.Running.
func (p *process) Exited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// End implements provider.Running. It does not ask the bridge to stop first, since an abandoned
// call may be in progress.
func (p *process) End() error {
	var errs []error
	p.once.Do(func() {
		if p.connection != nil {
			errs = append(errs, p.connection.Close())
		}
		if p.command.Process != nil {
			_ = p.command.Process.Kill() // it may be gone
		}
		<-p.exited
		errs = append(errs, p.left, os.RemoveAll(p.dir))
	})
	return errors.Join(errs...)
}
