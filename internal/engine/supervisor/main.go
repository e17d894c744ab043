package supervisor

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

const (
	// name is the first argument of a supervisor process, and identifies it as one.
	name = "machine-iac-supervisor"
	// lockName is the file with which the supervisors of a work folder wait for each other.
	lockName = "supervisor.lock"
	// lockSlack is how long a predecessor may take to stop engines beyond their grace period.
	lockSlack = 10 * time.Second
	lockPoll  = 50 * time.Millisecond
)

// Main returns immediately unless the process is a supervisor; then it never returns. Call it
// before anything else.
func Main() {
	if len(os.Args) == 0 || os.Args[0] != name {
		return
	}
	// Signals from a terminal or a service manager are for the manager. The supervisor exits when the
	// manager has.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTSTP,
		syscall.SIGTTIN, syscall.SIGTTOU)
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: asTheManager})).With("logger",
		"supervisor")
	if err := serve(os.Args[1:], log); err != nil {
		log.Error("The supervisor exits", "error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// asTheManager formats the supervisor's log lines like the manager's, since both are in the same
// log.
func asTheManager(groups []string, a slog.Attr) slog.Attr {
	switch {
	case len(groups) > 0:
	case a.Key == slog.TimeKey:
		a.Key = "ts"
	case a.Key == slog.LevelKey:
		a.Value = slog.StringValue(strings.ToLower(a.Value.String()))
	}
	return a
}

// arguments are the arguments of a supervisor process.
type arguments struct {
	dir                  string
	timeout, grace, last time.Duration
}

func (a arguments) encode() []string {
	return []string{a.dir, a.timeout.String(), a.grace.String(), a.last.String()}
}

func decode(texts []string) (arguments, error) {
	if len(texts) != 4 {
		return arguments{}, fmt.Errorf("got %d arguments, want a folder and three durations", len(texts))
	}
	a := arguments{dir: texts[0]}
	for i, into := range []*time.Duration{&a.timeout, &a.grace, &a.last} {
		var err error
		if *into, err = time.ParseDuration(texts[i+1]); err != nil {
			return arguments{}, err
		}
	}
	return a, nil
}

func serve(texts []string, log *slog.Logger) error {
	a, err := decode(texts)
	if err != nil {
		return err
	}
	lock, err := takeLock(a)
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // the process ends
	records := make(chan message)
	go func() {
		defer close(records)
		for in := bufio.NewReader(os.Stdin); ; {
			r, err := readRecord(in)
			if err != nil {
				return
			}
			records <- r
		}
	}()
	g := &guard{
		timeout: a.timeout, grace: a.grace, now: now, after: time.After, messages: records, log: log,
		report:  func(status byte) { _, _ = os.Stdout.Write([]byte{status}) }, // there may be no reader
		engines: folder{dir: a.dir, manager: os.Getppid()},
		last:    a.last,
	}
	if a.last > 0 {
		g.mode = guarding // like its predecessor
	} else if _, err := g.engines.kill(); err != nil { // engines of a manager that has died with its supervisor
		return err
	}
	g.report(ready)
	debug.FreeOSMemory()
	g.run()
	return nil
}

// takeLock waits until the supervisor of an earlier manager with this work folder has exited: that
// one cannot tell which manager the engines belong to.
func takeLock(a arguments) (*os.File, error) {
	path := filepath.Join(a.dir, lockName)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the work folder: %w", err)
	}
	for until := now() + a.grace + lockSlack; ; time.Sleep(lockPoll) {
		if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return file, nil
		}
		if now() >= until {
			return nil,
				fmt.Errorf("locking %s: %w; the work folder belongs to another running manager, choose another with --work-dir",
					path, err)
		}
	}
}

// folder is the set of processes in a work folder, except managers.
type folder struct {
	dir     string
	manager int
}

// manages reports whether a process is the manager, whatever its working folder, or another process
// of the manager's program: another manager may be waiting here for this one's engines to exit. A
// launcher is about to become an engine and counts as one, and so does anything that an engine
// starts.
func (f folder) manages(pid int) bool {
	if _, marked := sandbox.MarkOf(pid); marked {
		return false
	}
	if pid == f.manager && os.Getppid() == f.manager { // once it has exited, its ID may belong to another process
		return true
	}
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	its, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	return err == nil && os.SameFile(own, its) && !sandbox.Launches(pid)
}

func (f folder) interrupt(spare []int) ([]int, error) {
	return workdir.InterruptManaged(f.dir, f.manages, func(pid int) bool { return slices.Contains(spare, pid) })
}
func (f folder) left() ([]int, error) { return workdir.Managed(f.dir, f.manages) }
func (f folder) kill() (int, error)   { return workdir.KillManaged(f.dir, f.manages) }
