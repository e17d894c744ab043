// Package observe observes an operator from outside: its processes, its states and its Machines' instances.
package observe

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type Process struct {
	PID, Parent int
	// Name is the executable's, Dir the working directory.
	Name, Dir string
	// State is the kernel's letter: R, S, D, T (stopped), Z (zombie).
	State     byte
	Arguments []string
}

func (p Process) String() string { return fmt.Sprintf("%s (pid %d in %s)", p.Name, p.PID, p.Dir) }

// Engine reports whether it is an engine's CLI.
func (p Process) Engine() bool {
	return slices.Contains([]string{"tofu", "terraform", "pulumi"}, p.Name)
}

// Host reports whether it is a Pulumi language host.
func (p Process) Host() bool { return strings.HasPrefix(p.Name, "pulumi-language-") }

// Provider reports whether it is a provider plugin.
func (p Process) Provider() bool {
	return strings.HasPrefix(p.Name, "terraform-provider-") || strings.HasPrefix(p.Name, "pulumi-resource-")
}

// Kept reports whether it runs in the folder in which a manager keeps providers and Pulumi bridges warm.
func (p Process) Kept() bool {
	return strings.Contains(p.Dir, "/providers/") || strings.Contains(p.Dir, "/pulumi/b/p/")
}

// Supervises returns the work folder whose processes it kills after the manager's death, or "" if it is no supervisor.
func (p Process) Supervises() string {
	if len(p.Arguments) < 2 || p.Arguments[0] != "machine-iac-supervisor" {
		return ""
	}
	return p.Arguments[1]
}

// Within reports whether a process works in or below one of folders, or is an engine, host or provider with one of
// parents.
func (p Process) Within(folders []string, parents []int) bool {
	below := func(folder string) bool { return p.Dir == folder || strings.HasPrefix(p.Dir, folder+"/") }
	return slices.ContainsFunc(folders, below) ||
		slices.Contains(parents, p.Parent) && (p.Engine() || p.Host() || p.Provider())
}

// Processes returns all processes except kernel threads and those that are ending.
func Processes() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, ok := read(pid); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

func read(pid int) (Process, bool) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(folder, "exe"))
	if err != nil {
		return Process{}, false // gone, or a kernel thread
	}
	dir, err := os.Readlink(filepath.Join(folder, "cwd"))
	if err != nil {
		return Process{}, false
	}
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return Process{}, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return Process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return Process{}, false
	}
	line, _ := os.ReadFile(filepath.Join(folder, "cmdline")) // a process that just ended has none
	return Process{
		PID: pid, Parent: parent, Name: filepath.Base(strings.TrimSuffix(exe, " (deleted)")),
		Dir:   strings.TrimSuffix(dir, " (deleted)"),
		State: fields[0][0], Arguments: strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"),
	}, true
}
