package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

const (
	// managerVariable has the test binary be a manager with the work folder that it names.
	managerVariable = "SUPERVISOR_TEST_MANAGER"
	processTimeout  = 3 * time.Second
	processGrace    = time.Second
	patience        = 20 * time.Second
)

func TestMain(m *testing.M) {
	Main()
	if stage := os.Getenv(fugitiveVariable); stage != "" {
		if err := beFugitive(stage); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(managerVariable); dir != "" {
		if err := beManager(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beManager leads until its input ends, and then stops in order. It writes what a test may want to know.
func beManager(dir string) error {
	log := funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{})
	s, err := Start(context.Background(), Options{Dir: dir, Timeout: processTimeout, Grace: processGrace, Active: func() bool { return true }, Logger: log})
	if err != nil {
		return err
	}
	s.Heartbeat()
	fmt.Println("guarded")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	return s.Stop()
}

// manager is a process that leads, with its supervisor.
type manager struct {
	*exec.Cmd
	dir string
}

func startManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{exec.Command(os.Args[0]), filepath.Join(shortdir.New(t), "work")}
	m.again(t)
	return m
}

// again starts the manager, or another in the same folder.
func (m *manager) again(t *testing.T) {
	t.Helper()
	m.Cmd = exec.Command(os.Args[0])
	m.Env = append(os.Environ(), managerVariable+"="+m.dir)
	m.Stderr = os.Stderr
	if err := os.MkdirAll(filepath.Join(m.dir, "runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.Dir = m.dir // the supervisor ends what is in the folder, but not its manager
	out, err := m.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Process.Kill()
		_ = m.Process.Signal(syscall.SIGCONT)
		_ = m.Wait()
		eventually(t, "its supervisor ends", func() bool { return len(supervisors(m.dir)) == 0 })
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "guarded\n" {
		t.Fatalf("the manager said %q, %v", line, err)
	}
}

func (m *manager) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := m.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// supervisor is the id of the manager's supervisor.
func (m *manager) supervisor(t *testing.T) int {
	t.Helper()
	var found []int
	eventually(t, "there is one supervisor", func() bool {
		found = supervisors(m.dir)
		return len(found) == 1
	})
	return found[0]
}

// supervisors are the supervisors of a folder.
func supervisors(dir string) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		words := strings.Split(string(raw), "\x00")
		if err == nil && words[0] == name && slices.Contains(words, dir) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			found = append(found, pid)
		}
	}
	return found
}

// engine is a process in a run's folder that notes its interrupt.
func (m *manager) engine(t *testing.T, onInterrupt string) *engineProcess {
	t.Helper()
	e := m.doomed(t, onInterrupt)
	select {
	case <-e.up:
	case <-e.gone:
		t.Fatalf("an engine has ended before it was up: %s", e.ProcessState)
	}
	return e
}

// doomed is an engine that may be killed before it is up.
func (m *manager) doomed(t *testing.T, onInterrupt string) *engineProcess {
	t.Helper()
	e := &engineProcess{noted: filepath.Join(m.dir, "noted"), up: make(chan struct{}), gone: make(chan struct{})}
	e.Cmd = exec.Command("sh", "-c", `trap "echo >> `+e.noted+`; `+onInterrupt+`" INT; echo up; while :; do sleep 0.1; done`)
	e.Dir = filepath.Join(m.dir, "runs")
	e.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := e.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(e.gone)
		if _, err := bufio.NewReader(out).ReadString('\n'); err == nil {
			close(e.up)
		}
		_ = e.Wait()
	}()
	t.Cleanup(func() { _ = syscall.Kill(-e.Process.Pid, syscall.SIGKILL) })
	return e
}

// engineProcess is an engine's.
type engineProcess struct {
	*exec.Cmd
	noted string
	// up is closed when it notes interrupts, gone when it has ended.
	up, gone chan struct{}
}

func (p *engineProcess) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

func (p *engineProcess) interrupts() int {
	raw, _ := os.ReadFile(p.noted)
	return strings.Count(string(raw), "\n")
}

// eventually waits for something.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not so after %s: %s", patience, what)
		}
	}
}

func TestAKilledManagersEnginesEnd(t *testing.T) {
	m := startManager(t)
	engine := m.engine(t, "exit 0")
	m.signal(t, syscall.SIGKILL)
	eventually(t, "the engine ends", engine.ended)
	if engine.interrupts() != 1 {
		t.Errorf("it was interrupted %d times, want once", engine.interrupts())
	}
	eventually(t, "The supervisor exits", func() bool { return len(supervisors(m.dir)) == 0 })
}

func TestAStoppedManagersEnginesEnd(t *testing.T) {
	long.Test(t)
	m := startManager(t)
	engine := m.engine(t, ":") // it ignores the interrupt
	m.signal(t, syscall.SIGSTOP)
	stopped := time.Now()
	eventually(t, "the engine is interrupted", func() bool { return engine.interrupts() == 1 })
	if engine.ended() {
		t.Error("it was killed with the interrupt")
	}
	eventually(t, "the engine is killed", engine.ended)
	if took := time.Since(stopped); took < processTimeout/2+processGrace {
		t.Errorf("it was killed after %s, before timeout and grace", took)
	}
	if engine.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended by %s", engine.ProcessState)
	}
	early := m.doomed(t, "exit 0")
	eventually(t, "an engine that starts meanwhile is killed", early.ended)

	m.signal(t, syscall.SIGCONT)
	eventually(t, "an engine lives again", func() bool {
		next := m.doomed(t, "exit 0")
		defer func() { _ = next.Process.Kill() }()
		time.Sleep(2 * sweep)
		return !next.ended()
	})
	m.supervisor(t)
}

func TestAllProcessesThatStandStillAreAGap(t *testing.T) {
	m := startManager(t)
	engine := m.engine(t, "exit 0")
	supervisor := m.supervisor(t)
	m.signal(t, syscall.SIGSTOP)
	if err := syscall.Kill(supervisor, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(processTimeout + 100*time.Millisecond) // it is stopped
	if engine.ended() {
		t.Fatal("a supervisor that is stopped ended it")
	}
	m.signal(t, syscall.SIGCONT) // first: its beat may come first
	if err := syscall.Kill(supervisor, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the engine ends", engine.ended)
}

func TestASupervisorThatDiesIsReplaced(t *testing.T) {
	m := startManager(t)
	engine := m.engine(t, "exit 0")
	for range 3 {
		first := m.supervisor(t)
		if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "there is another", func() bool { return !slices.Contains(supervisors(m.dir), first) && len(supervisors(m.dir)) == 1 })
	}
	if engine.ended() {
		t.Fatal("the engine of a manager that is well was ended")
	}
	m.signal(t, syscall.SIGKILL)
	eventually(t, "the engine ends with its manager", engine.ended)
}

func TestASupervisorThatStandsStillIsReplaced(t *testing.T) {
	long.Test(t)
	m := startManager(t)
	engine := m.engine(t, "exit 0")
	first := m.supervisor(t)
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is another", func() bool { return !slices.Contains(supervisors(m.dir), first) && len(supervisors(m.dir)) == 1 })
	time.Sleep(processTimeout)
	if engine.ended() {
		t.Fatal("the engine of a manager that is well was ended")
	}
}

func TestASupervisorIgnoresWhatATerminalSends(t *testing.T) {
	m := startManager(t)
	supervisor := m.supervisor(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := syscall.Kill(supervisor, signal); err != nil {
			t.Fatal(err)
		}
	}
	session, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(supervisor), 0, 0)
	if int(session) != supervisor {
		t.Errorf("it is in session %d, want its own", session)
	}
	open, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(supervisor), "fd", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range open {
		if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, "socket:") && filepath.Base(file) != "2" {
			t.Errorf("it holds %s, %s", file, to)
		}
	}
	engine := m.engine(t, "exit 0")
	m.signal(t, syscall.SIGKILL)
	eventually(t, "it still ends the engine", engine.ended)
}

func TestTheNextManagerWaitsForTheSupervisorOfTheLast(t *testing.T) {
	m := startManager(t)
	stubborn := m.engine(t, ":")
	m.signal(t, syscall.SIGKILL)
	_ = m.Wait()
	m.again(t) // in the same folder
	if !stubborn.ended() {
		t.Error("the next manager runs beside an engine of the last")
	}
	engine := m.engine(t, "exit 0")
	time.Sleep(2 * processGrace)
	if engine.ended() || len(supervisors(m.dir)) != 1 {
		t.Errorf("its engine was ended: %t; supervisors: %v", engine.ended(), supervisors(m.dir))
	}
}

func TestAManagerStopsWithItsSupervisor(t *testing.T) {
	dir := shortdir.New(t)
	s, err := Start(t.Context(), Options{Dir: dir, Timeout: processTimeout, Grace: processGrace, Active: func() bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	s.Heartbeat()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if left := supervisors(s.options.Dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	s.Heartbeat() // a renewal may come late
}

func TestWithoutASupervisorTheEnginesEnd(t *testing.T) {
	m := &manager{dir: shortdir.New(t)}
	if err := os.MkdirAll(filepath.Join(m.dir, "runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "program")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, program); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Options{Dir: m.dir, Timeout: processTimeout, Grace: processGrace, Active: func() bool { return true }, program: program})
	if err != nil {
		t.Fatal(err)
	}
	engine := m.engine(t, ":")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(m.supervisor(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.Failed():
		if !strings.Contains(err.Error(), "replacing the supervisor") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not say that it failed")
	}
	if !engine.ended() {
		eventually(t, "the engine was killed", engine.ended)
	}
}
