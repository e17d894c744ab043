package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// endTimeout bounds the wait for killed processes to go.
	endTimeout = 5 * time.Second
	endPoll    = 10 * time.Millisecond
)

// EndProcesses kills the processes whose working folder is dir or lies in it, and waits until they are gone. It answers how many
// it killed. Plugins outlive an engine that is killed, and inherit its working folder.
func EndProcesses(dir string) (int, error) {
	killed := map[int]struct{}{}
	for deadline := endTimeout; ; deadline -= endPoll {
		found, err := killIn(dir)
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

// killIn kills once and answers whom.
func killIn(dir string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // not Linux: there is no telling
	}
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var killed []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if killIfIn(pid, dir) {
			killed = append(killed, pid)
		}
	}
	return killed, nil
}

// killIfIn holds the process before it looks at its folder, so that it can't kill another one with the same id.
func killIfIn(pid int, dir string) bool {
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
	return process.Kill() == nil
}
