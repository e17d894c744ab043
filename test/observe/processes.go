// Package observe looks at an operator from outside: at its processes, its states and the instances of its Machines.
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

// Process is a process of this machine.
type Process struct {
	PID, Parent int
	// Name is that of its executable file, Dir its working folder.
	Name, Dir string
	// State is the kernel's letter: R, S, D, T for one that is stopped, Z for one that has ended.
	State     byte
	Arguments []string
}

func (p Process) String() string { return fmt.Sprintf("%s (pid %d in %s)", p.Name, p.PID, p.Dir) }

// Engine reports whether it is a CLI that runs what a plan says.
func (p Process) Engine() bool {
	return slices.Contains([]string{"tofu", "terraform", "pulumi"}, p.Name)
}

// Host reports whether it reads a program for Pulumi.
func (p Process) Host() bool { return strings.HasPrefix(p.Name, "pulumi-language-") }

// Provider reports whether it is a plugin that speaks to an infrastructure.
func (p Process) Provider() bool {
	return strings.HasPrefix(p.Name, "terraform-provider-") || strings.HasPrefix(p.Name, "pulumi-resource-")
}

// Kept reports whether it works where a manager keeps providers, Pulumi's bridges to them, and hosts of programs running for the next run.
func (p Process) Kept() bool {
	return strings.Contains(p.Dir, "/providers/") || strings.Contains(p.Dir, "/pulumi/b/p/") || strings.Contains(p.Dir, "/pulumi/h/")
}

// Supervises returns the work folder whose processes it ends when their manager has died, "" when it is no supervisor.
func (p Process) Supervises() string {
	if len(p.Arguments) < 2 || p.Arguments[0] != "machine-iac-supervisor" {
		return ""
	}
	return p.Arguments[1]
}

// Within reports whether a process works in one of these folders or below, or is an engine, host or provider whose parent is one of these.
func (p Process) Within(folders []string, parents []int) bool {
	below := func(folder string) bool { return p.Dir == folder || strings.HasPrefix(p.Dir, folder+"/") }
	return slices.ContainsFunc(folders, below) || slices.Contains(parents, p.Parent) && (p.Engine() || p.Host() || p.Provider())
}

// Processes returns the processes that there are, those that are ending and the kernel's left out.
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
		return Process{}, false // gone, or a thread of the kernel
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
	line, _ := os.ReadFile(filepath.Join(folder, "cmdline")) // one that has ended meanwhile has none
	return Process{
		PID: pid, Parent: parent, Name: filepath.Base(strings.TrimSuffix(exe, " (deleted)")), Dir: strings.TrimSuffix(dir, " (deleted)"),
		State: fields[0][0], Arguments: strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"),
	}, true
}
