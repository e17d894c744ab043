package supervisor

import (
	"log/slog"
	"slices"
	"time"
)

const (
	// endPoll is how often the supervisor checks whether interrupted engines have exited.
	endPoll = 200 * time.Millisecond
	// sweep is how often it checks for engines that a manager has started after a gap.
	sweep = 500 * time.Millisecond
)

// engines are the processes that a supervisor may stop.
type engines interface {
	// interrupt interrupts the processes, except spared ones, and returns their IDs.
	interrupt(spare []int) ([]int, error)
	// left returns the IDs of all processes.
	left() ([]int, error)
	// kill kills all processes and returns their number.
	kill() (int, error)
}

// mode is the state of a supervisor.
type mode int

const (
	idle     mode = iota // no heartbeat yet: the manager does not lead and has no engines
	guarding             // engines may run as long as heartbeats arrive
	sweeping             // engines were stopped after a gap, and none may run until the manager resumes
)

// guard is the logic of a supervisor, without the process.
type guard struct {
	timeout, grace time.Duration
	now            func() time.Duration
	after          func(time.Duration) <-chan time.Time
	messages       <-chan message // closed when the manager is gone
	report         func(byte)
	engines        engines
	log            *slog.Logger

	mode mode
	last time.Duration
}

// run returns when the manager and its engines are gone, or when the manager says that there is
// nothing left to guard.
func (g *guard) run() {
	for {
		select {
		case r, alive := <-g.messages:
			switch {
			case !alive:
				g.end("the manager is gone")
				return
			case r.kind == quit:
				return
			}
			g.receive(r)
		case <-g.after(g.patience()):
			g.check()
		}
	}
}

// patience returns how long nothing needs to be done.
func (g *guard) patience() time.Duration {
	switch g.mode {
	case guarding:
		return max(time.Millisecond, g.last+g.timeout-g.now())
	case sweeping:
		return sweep
	default:
		return time.Hour
	}
}

// check does what is due.
func (g *guard) check() {
	switch g.mode {
	case guarding:
		if g.now()-g.last >= g.timeout {
			g.end("no heartbeat arrived in time")
		}
	case sweeping:
		g.kill()
	}
}

func (g *guard) receive(r message) {
	g.check() // first: a heartbeat after a gap does not undo the gap
	if r.kind == resume || r.kind == beat && g.mode != sweeping {
		g.mode, g.last = guarding, max(g.last, r.at)
	}
	g.report(heard)
}

// end interrupts all engines, each once, and kills what is left after the grace period.
func (g *guard) end(why string) {
	g.mode = sweeping
	g.report(ending)
	var interrupted []int
	for until := g.now() + g.grace; ; <-g.after(endPoll) {
		found, err := g.engines.interrupt(interrupted)
		if err != nil {
			g.log.Error("Interrupting engines failed", "error", err)
		}
		if interrupted == nil && len(found) > 0 {
			g.log.Info("Stopping engines", "why", why, "processes", found)
		}
		interrupted = slices.Concat(interrupted, found)
		left, err := g.engines.left()
		if err == nil && len(left) == 0 {
			break
		}
		if g.now() >= until && g.kill() {
			break
		}
	}
	g.report(ended)
}

// kill reports whether nothing is left.
func (g *guard) kill() bool {
	killed, err := g.engines.kill()
	if err != nil {
		g.log.Error("Killing engines failed", "error", err)
	}
	if killed > 0 {
		g.log.Info("Killed engines", "processes", killed)
	}
	return err == nil
}
