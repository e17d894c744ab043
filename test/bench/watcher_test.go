//go:build bench

package bench

import (
	"time"

	"github.com/machine-iac/machine-iac-operator/test/process"
)

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
	processes := process.Tree(root)
	if len(processes) == 0 {
		return
	}
	var together float64
	for _, p := range processes[1:] {
		if mib := process.PeakMiB(p.PID); mib > w.most.mib {
			w.most.name, w.most.mib = p.Program(), mib
		}
		together += process.MiB(p.PID)
	}
	w.most.together = max(w.most.together, together)
}

func (w *watcher) end() peak {
	close(w.stop)
	<-w.done
	return w.most
}
