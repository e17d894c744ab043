//go:build bench

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, which Linux fixes at 100 for what it shows in /proc.
const ticksPerSecond = 100

// process is what /proc has about one process.
type process struct {
	pid, parent int
	name        string
	// cpu is the time of the process and of its children that it has waited for.
	cpu time.Duration
	// own is the time of the process alone.
	own time.Duration
}

func readProcess(pid int) (process, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	// The name is in parentheses and may hold anything, so fields are counted behind the last one.
	open, end := strings.IndexByte(string(raw), '('), strings.LastIndexByte(string(raw), ')')
	fields := strings.Fields(string(raw[end+1:]))
	p := process{pid: pid, name: string(raw[open+1 : end])}
	if p.parent, err = strconv.Atoi(fields[1]); err != nil {
		return process{}, err
	}
	for i, field := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return process{}, err
		}
		p.cpu += time.Duration(ticks) * time.Second / ticksPerSecond
		if i < 2 {
			p.own = p.cpu
		}
	}
	return p, nil
}

// tree returns a process and its living descendants.
func tree(root int) []process {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	children := map[int][]process{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil { // one that has just ended is counted by its parent
			children[p.parent] = append(children[p.parent], p)
		}
	}
	first, err := readProcess(root)
	if err != nil {
		return nil
	}
	all := []process{first}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i].pid]...)
	}
	return all
}

// cpuOf returns the CPU time of a process, of all that it has waited for, and of its living descendants.
func cpuOf(root int) time.Duration {
	var sum time.Duration
	for _, p := range tree(root) {
		sum += p.cpu
	}
	return sum
}

// peakOf returns the most memory that a process has had, in MiB.
func peakOf(pid int) float64 { return mibOf(fmt.Sprintf("/proc/%d/status", pid), "VmHWM:") }

// mibOf returns a field in KiB of a file of /proc, in MiB.
func mibOf(file, field string) float64 {
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

// programOf returns a process's program; /proc/PID/stat cuts its name off.
func programOf(p process) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid))
	if err != nil {
		return p.name
	}
	return filepath.Base(path)
}

// peak is what the children of a process have needed at most.
type peak struct {
	// name is the program of the largest child, mib its memory.
	name string
	mib  float64
	// together is the memory of all children at one time, what they share counted once.
	together float64
}

// watcher notes what the children of a process need.
type watcher struct {
	most peak // the watcher's own until done is closed
	stop chan struct{}
	done chan struct{}
}

func watch(root int) *watcher {
	w := &watcher{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for {
			w.look(root)
			select {
			case <-w.stop:
				return
			case <-time.After(250 * time.Millisecond):
			}
		}
	}()
	return w
}

func (w *watcher) look(root int) {
	processes := tree(root)
	if len(processes) == 0 {
		return
	}
	var together float64
	for _, p := range processes[1:] {
		if mib := peakOf(p.pid); mib > w.most.mib {
			w.most.name, w.most.mib = programOf(p), mib
		}
		together += mibOf(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid), "Pss:")
	}
	w.most.together = max(w.most.together, together)
}

func (w *watcher) end() peak {
	close(w.stop)
	<-w.done
	return w.most
}
