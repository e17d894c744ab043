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
)

const (
	// endTimeout bounds the wait for killed processes to go.
	endTimeout = 5 * time.Second
	endPoll    = 10 * time.Millisecond
)

// KillProcesses kills the processes whose working folder is dir or in it, and waits until they are gone. It returns how many
// it killed. Plugins outlive an engine that is killed, and inherit its working folder. This process is left alone, and so are those that
// are to be spared.
func KillProcesses(dir string, spare ...func(pid int) bool) (int, error) {
	killed := map[int]struct{}{}
	for deadline := endTimeout; ; deadline -= endPoll {
		found, err := signalIn(dir, os.Kill, spare)
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
			return len(killed), fmt.Errorf("processes %v in %s do not end although killed", found, dir)
		}
		time.Sleep(endPoll)
	}
}

// InterruptProcesses is KillProcesses with an interrupt, after which an engine saves what it has done. It sends one and does not wait. It
// returns the ids of those that it interrupted; spare them the next time, because an engine takes a second interrupt for a kill.
func InterruptProcesses(dir string, spare ...func(pid int) bool) ([]int, error) {
	return signalIn(dir, os.Interrupt, spare)
}

// Processes returns the ids of the processes whose working folder is dir or in it.
func Processes(dir string, spare ...func(pid int) bool) ([]int, error) {
	return signalIn(dir, nil, spare)
}

// signalIn sends a signal once, none where it is nil, and returns to whom.
func signalIn(dir string, signal os.Signal, spare []func(pid int) bool) ([]int, error) {
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
		if err == nil && pid != os.Getpid() && signalIfIn(pid, dir, signal, spare) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// signalIfIn holds the process before it looks at its folder, so that it can't signal another one with the same id.
func signalIfIn(pid int, dir string, signal os.Signal, spare []func(pid int) bool) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer process.Release() //nolint:errcheck // it only gives a handle back
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		return false // gone, a zombie, or somebody else's
	}
	if cwd = strings.TrimSuffix(cwd, " (deleted)"); cwd != dir && !strings.HasPrefix(cwd, dir+string(filepath.Separator)) {
		return false
	}
	if slices.ContainsFunc(spare, func(spared func(int) bool) bool { return spared(pid) }) {
		return false
	}
	return signal == nil || process.Signal(signal) == nil
}
