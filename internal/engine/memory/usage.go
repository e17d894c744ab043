package memory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
		used, err := resident(filepath.Join("/proc", entry.Name(), "status"))
		switch {
		case errors.Is(err, os.ErrNotExist):
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

// resident returns a process's memory that is not backed by a file, from its status in /proc. It
// excludes pages of executables: the kernel reclaims those before it kills.
func resident(file string) (int64, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "no such process") {
			return 0, os.ErrNotExist
		}
		return 0, err
	}
	var sum int64
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading %s of %s: %w", name, file, err)
		}
		sum += kib << 10
	}
	return sum, nil
}
