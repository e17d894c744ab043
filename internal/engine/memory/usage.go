package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

// runsFolder is the folder with the folders of all engines' runs.
const runsFolder = "runs"

// read returns the usage of this process and those in a folder. Processes that disappear meanwhile
// use nothing.
func read(dir string) (Usage, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return Usage{}, fmt.Errorf("listing processes: %w", err)
	}
	usage := Usage{Runs: map[string]int64{}}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		run, within := "", pid == os.Getpid()
		if !within {
			run, within = runIn(dir, pid)
		}
		if !within {
			continue
		}
		used, err := resident(pid)
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH):
		case err != nil:
			return Usage{}, err
		case run == "":
			usage.Shared += used
		default:
			usage.Runs[run] += used
		}
	}
	inFiles, err := filesInMemory(dir)
	usage.Shared += inFiles
	return usage, err
}

// runIn reports whether a process works in a folder, and in which run's, if any.
func runIn(dir string, pid int) (run string, within bool) {
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		return "", false // gone, a zombie, or another user's
	}
	rest, within := strings.CutPrefix(strings.TrimSuffix(cwd, " (deleted)"), dir+string(filepath.Separator))
	if !within {
		return "", false
	}
	parts := strings.Split(rest, string(filepath.Separator))
	for i, part := range parts[:len(parts)-1] {
		if part == runsFolder {
			return parts[i+1], true
		}
	}
	return "", true
}

// resident returns a process's memory that is not backed by a file. It excludes pages of executables:
// the kernel reclaims those before it kills.
func resident(pid int) (int64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	status, err := process.NewStatus()
	return int64(status.RssAnon + status.RssShmem), err
}
