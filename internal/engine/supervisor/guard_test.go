package supervisor

import (
	"log/slog"
	"slices"
	"testing"
	"time"
)

const (
	testTimeout = 10 * time.Second
	testGrace   = 15 * time.Second
)

// world is a guard's, with a clock that moves when the guard waits.
type world struct {
	*guard
	at time.Duration
	// alive are processes, and whether they end when interrupted.
	alive       map[int]bool
	interrupted map[int]int
	killed      map[int]time.Duration
	written     []byte
}

func newWorld(alive map[int]bool) *world {
	w := &world{at: time.Hour, alive: alive, interrupted: map[int]int{}, killed: map[int]time.Duration{}}
	w.guard = &guard{
		timeout: testTimeout, grace: testGrace, log: slog.New(slog.DiscardHandler), engines: w,
		now:    func() time.Duration { return w.at },
		report: func(status byte) { w.written = append(w.written, status) },
		after: func(wait time.Duration) <-chan time.Time {
			w.at += wait
			done := make(chan time.Time, 1)
			done <- time.Time{}
			return done
		},
	}
	return w
}

func (w *world) interrupt(spare []int) ([]int, error) {
	var found []int
	for pid, polite := range w.alive {
		if slices.Contains(spare, pid) {
			continue
		}
		found = append(found, pid)
		w.interrupted[pid]++
		if polite {
			delete(w.alive, pid)
		}
	}
	return found, nil
}

func (w *world) left() ([]int, error) {
	var found []int
	for pid := range w.alive {
		found = append(found, pid)
	}
	return found, nil
}

func (w *world) kill() (int, error) {
	count := len(w.alive)
	for pid := range w.alive {
		w.killed[pid] = w.at
		delete(w.alive, pid)
	}
	return count, nil
}

func TestEnginesLiveFromBeatToBeat(t *testing.T) {
	w := newWorld(map[int]bool{1: true})
	w.at += time.Hour
	w.check()
	for range 10 {
		w.receive(message{beat, w.at})
		w.at += testTimeout - 1
	}
	w.check()
	if len(w.interrupted) != 0 {
		t.Fatal("it ended an engine although beats came in time")
	}
	w.at++
	w.check()
	if w.interrupted[1] != 1 {
		t.Errorf("interrupted %v, want process 1 once", w.interrupted)
	}
}

func TestAnEngineThatIgnoresItsInterruptIsKilledAfterTheGrace(t *testing.T) {
	w := newWorld(map[int]bool{1: true, 2: false})
	w.receive(message{beat, w.at})
	w.at += testTimeout
	began := w.at
	w.check()
	if w.interrupted[1] != 1 || w.interrupted[2] != 1 {
		t.Errorf("interrupted %v, want each once: an engine takes a second interrupt for a kill", w.interrupted)
	}
	if _, polite := w.killed[1]; polite {
		t.Error("the process that ended by itself was killed")
	}
	if took := w.killed[2] - began; took < testGrace || took > testGrace+endPoll {
		t.Errorf("killed after %s, want %s", took, testGrace)
	}
	if got := string(w.written); got != string([]byte{heard, ending, ended}) {
		t.Errorf("it said %q", got)
	}
}

func TestAGapIsAGap(t *testing.T) {
	for name, tc := range map[string]struct {
		gap, late, then time.Duration
		want            bool
	}{
		"a beat in time":                               {testTimeout - 1, 0, testTimeout - 1, false},
		"a beat after all processes stood still":       {testTimeout, 0, 0, true},
		"a beat that was held up counts from then":     {testTimeout - 1, time.Second, testTimeout - time.Second, true},
		"a beat that was held up, and another in time": {testTimeout - 1, time.Second, testTimeout - time.Second - 1, false},
		"a late beat takes nothing from a newer one":   {time.Second, time.Minute, testTimeout - time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(map[int]bool{1: true})
			w.receive(message{beat, w.at})
			w.at += tc.gap
			w.receive(message{beat, w.at - tc.late})
			w.at += tc.then
			w.check()
			if got := w.interrupted[1] > 0; got != tc.want {
				t.Errorf("the engine was ended: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAfterAGapNothingLivesUntilTheManagerResumes(t *testing.T) {
	w := newWorld(nil)
	w.alive = map[int]bool{}
	w.receive(message{beat, w.at})
	w.at += testTimeout
	w.check()
	w.alive[7] = true // the manager goes on, and has not looked yet whether it leads
	w.receive(message{beat, w.at})
	if _, killed := w.killed[7]; !killed {
		t.Error("an engine lives although the manager has not resumed")
	}
	w.alive[9] = true // nor by beats
	w.check()
	if _, killed := w.killed[9]; !killed {
		t.Error("an engine lives by a beat after a gap, although the manager has not resumed")
	}
	w.receive(message{resume, w.at})
	w.alive[8] = true
	w.at += testTimeout - 1
	w.check()
	if len(w.alive) != 1 {
		t.Error("an engine was ended although the manager has resumed")
	}
}

func TestTheEndOfTheManagerIsTheEndOfItsEngines(t *testing.T) {
	w := newWorld(map[int]bool{1: true, 2: false})
	records := make(chan message)
	close(records)
	w.messages = records
	w.after = func(wait time.Duration) <-chan time.Time {
		if len(w.interrupted) == 0 {
			return nil // it waits for the manager
		}
		w.at += wait
		done := make(chan time.Time, 1)
		done <- time.Time{}
		return done
	}
	w.run()
	if len(w.alive) != 0 || w.interrupted[1] != 1 {
		t.Errorf("%v live on; interrupted %v", w.alive, w.interrupted)
	}
}

func TestASupervisorThatMayQuitEndsNothing(t *testing.T) {
	w := newWorld(map[int]bool{1: true})
	records := make(chan message, 1)
	records <- message{kind: quit}
	w.messages = records
	w.after = func(time.Duration) <-chan time.Time { return nil }
	w.run()
	if len(w.alive) != 1 {
		t.Error("it ended an engine")
	}
}

func TestAReplacementKnowsTheLastBeat(t *testing.T) {
	a := arguments{dir: "/var/lib/a b", timeout: testTimeout, grace: testGrace, last: 90*time.Minute + 7}
	got, err := decode(a.encode())
	if err != nil || got != a {
		t.Errorf("got %+v, %v, want %+v", got, err, a)
	}
	if _, err := decode([]string{"/a", "1s", "ten", "0s"}); err == nil {
		t.Error("it takes what is no duration")
	}
}
