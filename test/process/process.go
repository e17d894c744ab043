// Package process reads from /proc what processes of this machine use.
package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// tick is the unit of times in /proc, which Linux fixes.
const tick = time.Second / 100

// Process is a process at the time it was read.
type Process struct {
	PID, Parent int
	// Name is what the kernel stores of the program's name: 15 bytes.
	Name string
	// CPU is the time of the process and of its children that it has waited for.
	CPU time.Duration
	// Own is the time of the process alone.
	Own time.Duration
}

func read(of procfs.Proc) (Process, error) {
	s, err := of.Stat()
	own := time.Duration(s.UTime+s.STime) * tick
	all := own + time.Duration(s.CUTime+s.CSTime)*tick
	return Process{PID: s.PID, Parent: s.PPID, Name: s.Comm, Own: own, CPU: all}, err
}

// Tree returns a process and its living descendants, or nothing if the process has ended.
func Tree(root int) []Process {
	running, _ := procfs.AllProcs()
	children := map[int][]Process{}
	for _, one := range running {
		if p, err := read(one); err == nil { // the parent has the time of a process that has just ended
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	top, err := procfs.NewProc(root)
	if err != nil {
		return nil
	}
	first, err := read(top)
	if err != nil {
		return nil
	}
	all := []Process{first}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i].PID]...)
	}
	return all
}

// CPU returns the CPU time of a process, of the children that it has waited for, and of its living descendants.
func CPU(root int) time.Duration {
	var sum time.Duration
	for _, p := range Tree(root) {
		sum += p.CPU
	}
	return sum
}

// Program returns the whole name of the program, or Name if the process has ended.
func (p Process) Program() string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
	if err != nil {
		return p.Name
	}
	return filepath.Base(path)
}

// PeakMiB returns the most memory that a process has had.
func PeakMiB(pid int) float64 { return mib(fmt.Sprintf("/proc/%d/status", pid), "VmHWM:") }

// MiB returns the memory of a process, with its share of what it shares with others.
func MiB(pid int) float64 { return mib(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:") }

// mib returns a field in KiB of a file of /proc, in MiB.
func mib(file, field string) float64 {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == field {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	return 0
}
