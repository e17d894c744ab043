package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

const (
	// startTimeout limits a start, in addition to what an earlier supervisor of the same folder takes
	// to exit.
	startTimeout = 30 * time.Second
	// maxStarts limits the attempts to replace a supervisor that has died.
	maxStarts = 5
	// startPause is the delay between attempts, and between starts of supervisors that die early.
	startPause = 200 * time.Millisecond
	// stopTimeout limits the wait for a supervisor that has nothing left to guard.
	stopTimeout = 5 * time.Second
	// writeTimeout limits a write to a supervisor that does not read.
	writeTimeout = 100 * time.Millisecond
)

// Options configure a Supervisor.
type Options struct {
	// Dir is the manager's work folder. Every process inside is stopped, except the manager.
	Dir string
	// Timeout is how long the supervisor waits for a heartbeat, and Grace how long interrupted engines
	// have to exit.
	Timeout, Grace time.Duration
	// Active reports whether the manager leads. It must not block.
	Active func() bool
	// Logger logs events of the supervisor. The supervisor itself logs to this process's standard
	// error.
	Logger logr.Logger

	// program is the supervisor's executable. Defaults to this one's.
	program string
}

// Supervisor is the manager's side of its supervisor. It is safe for concurrent use.
type Supervisor struct {
	options Options
	clock   clock.Clock
	failed  chan error
	stopped chan struct{} // closed by Stop
	gone    chan struct{} // closed when the last process has exited and is not replaced
	once    sync.Once

	mu sync.Mutex
	// process is the running one. last is the time of the last beat sent to it or a predecessor before
	// a gap.
	process  *process
	last     time.Duration
	stopping bool
}

// process is one supervisor's process.
type process struct {
	command *exec.Cmd
	beats   *os.File
	states  *os.File
	started time.Duration
	// ending means that it is stopping the engines, and ended that it has done so and waits for a
	// message to guard again.
	ending, ended bool
	// unheard is when the first unconfirmed beat was sent, or zero.
	unheard time.Duration
}

// Start starts a supervisor and returns when it is guarding. A supervisor of the same folder whose
// manager is dead exits first.
func Start(ctx context.Context, o Options) (*Supervisor, error) {
	dir, err := workdir.Make(o.Dir, "")
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	o.Dir = dir
	if o.program == "" {
		if o.program, err = ownProgram(); err != nil {
			return nil, fmt.Errorf("starting the supervisor: %w", err)
		}
	}
	s := &Supervisor{options: o, clock: clock.RealClock{}, failed: make(chan error, 1), stopped: make(chan struct{}),
		gone: make(chan struct{})}
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	go s.keep(context.WithoutCancel(ctx))
	go s.tick()
	return s, nil
}

// ownProgram returns this process's own executable, even if the file has been replaced.
func ownProgram() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

// Heartbeat sends a heartbeat if this process leads. From the first one on, the supervisor allows
// engines until one is missing. Heartbeats are sent automatically; a new leader also calls
// Heartbeat before it starts an engine.
func (s *Supervisor) Heartbeat() {
	at := now() // before the check: a delay in between counts
	if !s.options.Active() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.process
	if p == nil || p.ending || s.stopping {
		return
	}
	kind := beat
	if p.ended {
		kind, p.ended = resume, false
	}
	if err := p.send(message{kind: kind, at: at}, s.clock.Now()); err != nil {
		p.kill() // keep starts another
		return
	}
	// This process itself may have been suspended. Engines must then stop: by this supervisor, or by a
	// new one, which continues where this one stopped.
	gap := s.last > 0 && at-s.last >= s.options.Timeout
	if !gap || kind == resume {
		s.last = max(s.last, at)
	}
	if p.unheard == 0 || gap {
		p.unheard = at
	}
	if at-p.unheard >= s.options.Timeout {
		s.options.Logger.Info("The supervisor does not confirm heartbeats; starting another", "pid", p.command.Process.Pid)
		p.kill()
	}
}

// Failed returns why there is no supervisor and none could be started. The engines have been killed
// by then, and this process must exit.
func (s *Supervisor) Failed() <-chan error { return s.failed }

// Processes returns the IDs of the processes that the supervisor would stop.
func (s *Supervisor) Processes() ([]int, error) { return workdir.Managed(s.options.Dir) }

// Kill kills all engines immediately and waits until they are gone.
func (s *Supervisor) Kill() error {
	_, err := workdir.KillManaged(s.options.Dir)
	return err
}

// Stop stops the supervisor if no engine is left. Otherwise the supervisor stops the engines and
// then exits.
func (s *Supervisor) Stop() error {
	left, err := s.Processes()
	s.once.Do(func() { close(s.stopped) })
	s.mu.Lock()
	p := s.process
	s.stopping = true
	if p != nil {
		if err == nil && len(left) == 0 {
			err = p.send(message{kind: quit}, s.clock.Now())
		}
		err = errors.Join(err, p.beats.Close())
	}
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("stopping the supervisor: %w", err)
	}
	if p == nil || len(left) > 0 {
		return nil
	}
	select {
	case <-s.gone:
		return nil
	case <-s.clock.After(stopTimeout):
		return fmt.Errorf("stopping the supervisor: process %d does not exit", p.command.Process.Pid)
	}
}

// tick sends heartbeats until Stop.
func (s *Supervisor) tick() {
	for {
		select {
		case <-s.stopped:
			return
		case <-s.clock.After(s.options.Timeout / 3):
			s.Heartbeat()
		}
	}
}

// keep replaces a supervisor that dies, until Stop.
func (s *Supervisor) keep(ctx context.Context) {
	defer close(s.gone)
	for {
		p := s.process // only this function changes it from here on
		err := p.command.Wait()
		select {
		case <-s.stopped:
			return
		default:
		}
		s.options.Logger.Info("The supervisor has died; starting another", "pid", p.command.Process.Pid,
			"how", fmt.Sprint(err))
		s.mu.Lock()
		err = errors.Join(p.beats.Close(), p.states.Close())
		s.process = nil
		s.mu.Unlock()
		if err != nil {
			s.options.Logger.Error(err, "Closing the pipes of a supervisor")
		}
		if now()-p.started < time.Second && !s.pause() {
			return
		}
		if !s.replace(ctx) {
			return
		}
	}
}

// replace starts a supervisor after one has died. If it cannot, it kills the engines.
func (s *Supervisor) replace(ctx context.Context) bool {
	for try := 1; ; try++ {
		err := s.start(ctx)
		if err == nil {
			s.Heartbeat()
			return true
		}
		if try == maxStarts {
			s.failed <- errors.Join(fmt.Errorf("replacing the supervisor: %w", err), s.Kill())
			return false
		}
		s.options.Logger.Error(err, "Starting a supervisor; retrying")
		if !s.pause() {
			return false
		}
	}
}

// pause waits, and reports whether there is still something to do.
func (s *Supervisor) pause() bool {
	select {
	case <-s.stopped:
		return false
	case <-s.clock.After(startPause):
		return true
	}
}

// start starts a process and waits until it is guarding.
func (s *Supervisor) start(ctx context.Context) error {
	s.mu.Lock()
	arguments := arguments{dir: s.options.Dir, timeout: s.options.Timeout, grace: s.options.Grace, last: s.last}
	s.mu.Unlock()
	p, err := launch(s.options.program, arguments)
	if err != nil {
		return err
	}
	first, replies := make(chan error, 1), bufio.NewReader(p.states)
	go func() {
		_, err := replies.ReadByte() // ready, or EOF
		first <- err
	}()
	select {
	case err = <-first:
	case <-s.clock.After(startTimeout + arguments.grace + lockSlack):
		err = errors.New("the supervisor does not become ready")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		p.kill()
		return errors.Join(fmt.Errorf("the supervisor exited immediately, see its log: %w", err), p.command.Wait(),
			p.beats.Close(), p.states.Close())
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	go s.listen(p, replies)
	return nil
}

// listen handles messages from a process until it exits.
func (s *Supervisor) listen(p *process, from *bufio.Reader) {
	for {
		state, err := from.ReadByte()
		if err != nil {
			return
		}
		s.mu.Lock()
		switch state {
		case heard:
			p.unheard = 0
		case ending:
			p.ending, p.unheard = true, 0
			s.options.Logger.Info("The supervisor is stopping all engines: this process sent no heartbeat in time")
		case ended:
			p.ending, p.ended = false, true
		}
		s.mu.Unlock()
	}
}

// launch starts the program as a supervisor, in its own session and outside of the work folder.
func launch(program string, a arguments) (*process, error) {
	beatsOut, beats, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	states, statesIn, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, beatsOut.Close(), beats.Close())
	}
	command := exec.Command(program)
	command.Args = append([]string{name}, a.encode()...)
	command.Dir, command.Env = "/", []string{"GOMAXPROCS=1"}
	command.Stdin, command.Stdout, command.Stderr = beatsOut, statesIn, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := &process{command: command, beats: beats, states: states, started: now()}
	err = command.Start()
	err = errors.Join(err, beatsOut.Close(), statesIn.Close())
	if err != nil {
		return nil, errors.Join(err, beats.Close(), states.Close())
	}
	return p, nil
}

// send never blocks for long.
func (p *process) send(r message, at time.Time) error {
	if err := p.beats.SetWriteDeadline(at.Add(writeTimeout)); err != nil {
		return err
	}
	_, err := p.beats.Write(r.encode())
	return err
}

// kill kills the process, which may be dead already.
func (p *process) kill() { _ = p.command.Process.Kill() }
