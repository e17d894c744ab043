package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

const (
	// endTimeout limits the wait for killed processes to exit.
	endTimeout = 5 * time.Second
	endPoll    = 10 * time.Millisecond
)

// KillProcesses kills the processes of a folder, waits until they are gone, and returns their
// number. These are processes whose working folder is dir or below, such as plugins that outlive a
// killed engine, and processes that were started in dir in a sandbox, wherever they are now. It
// does not kill this process or those to spare.
func KillProcesses(dir string, spare ...func(pid int) bool) (int, error) {
	return kill(of(dir, spare))
}

// Processes returns the IDs of the processes of a folder.
func Processes(dir string, spare ...func(pid int) bool) ([]int, error) {
	return of(dir, spare).signal(nil)
}

// KillManaged is KillProcesses for everything that belongs to the manager with a work folder.
func KillManaged(work string, spare ...func(pid int) bool) (int, error) {
	return kill(managed(work, spare))
}

// InterruptManaged is KillManaged with an interrupt, on which an engine saves its state. It does
// not wait, and returns the IDs of the processes. Spare them the next time: an engine treats a
// second interrupt as a kill.
func InterruptManaged(work string, spare ...func(pid int) bool) ([]int, error) {
	return managed(work, spare).signal(os.Interrupt)
}

// Managed returns the IDs of all processes that belong to the manager with a work folder.
func Managed(work string, spare ...func(pid int) bool) ([]int, error) {
	return managed(work, spare).signal(nil)
}

// group is processes that belong together.
type group struct {
	dir    string
	marked func(sandbox.Mark) bool
	spare  []func(pid int) bool
}

func of(dir string, spare []func(pid int) bool) group {
	return group{dir: dir, marked: func(m sandbox.Mark) bool { return m.In(dir) }, spare: spare}
}

func managed(work string, spare []func(pid int) bool) group {
	return group{dir: work, marked: func(m sandbox.Mark) bool { return m.Managed(work) }, spare: spare}
}

func kill(g group) (int, error) {
	killed := map[int]struct{}{}
	for deadline := endTimeout; ; deadline -= endPoll {
		found, err := g.signal(os.Kill)
		if err != nil {
			return len(killed), err
		}
		for _, pid := range found {
			killed[pid] = struct{}{}
		}
		if len(found) == 0 {
			return len(killed), nil
		}
		if deadline <= 0 {
			return len(killed), fmt.Errorf("processes %v of %s are still running after being killed", found, g.dir)
		}
		time.Sleep(endPoll)
	}
}

// signal sends a signal once, or none if it is nil, and returns the IDs of the processes.
func (g group) signal(signal os.Signal) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // not Linux: unknown
	}
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && pid != os.Getpid() && g.signalOne(pid, signal) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// signalOne opens the process before it checks the owner, so that it cannot signal another process
// that reuses the ID.
func (g group) signalOne(pid int, signal os.Signal) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer process.Release() //nolint:errcheck // it only gives a handle back
	if !g.works(pid) {
		if mark, marked := sandbox.MarkOf(pid); !marked || !g.marked(mark) {
			return false
		}
	}
	if slices.ContainsFunc(g.spare, func(spared func(int) bool) bool { return spared(pid) }) {
		return false
	}
	return signal == nil || process.Signal(signal) == nil
}

// works reports whether a process has its working folder in the group's folder.
func (g group) works(pid int) bool {
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		return false // gone, a zombie, or another user's
	}
	cwd = strings.TrimSuffix(cwd, " (deleted)")
	return cwd == g.dir || strings.HasPrefix(cwd, g.dir+string(filepath.Separator))
}
