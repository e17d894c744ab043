package machinedeployment

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// world is a model of MachineSets and Machines. Machines come up slowly, fail, and leave slowly.
type world struct {
	random             *rand.Rand
	replicas, last     int
	surge, unavailable int
	recreate           bool
	sets               []*modelSet // the last is the current one
	log                []string
}

type modelSet struct {
	number   int
	machines []*modelMachine
	broken   bool
	keep     bool
}

type modelMachine struct {
	available, chosen, failed, leaving bool
}

func (w *world) fleet() *fleet {
	f := &fleet{replicas: w.replicas, last: w.last, surge: w.surge, unavailable: w.unavailable, recreate: w.recreate}
	for i, s := range w.sets {
		g := &group{number: s.number, replace: i < len(w.sets)-1 && !s.keep}
		for _, m := range s.machines {
			if m.leaving {
				g.leaving++
				continue
			}
			g.alive++
			if m.available {
				g.available++
			}
			if m.chosen {
				g.chosen++
				if m.available {
					g.chosenAvailable++
				}
			}
		}
		if i == len(w.sets)-1 {
			f.current = g
		} else {
			f.old = append(f.old, g)
		}
	}
	return f
}

// reconcile does what the controller does. It may end after any write, as when the manager restarts.
func (w *world) reconcile() {
	f := w.fleet()
	f.plan()
	writes := w.random.Intn(2 * (len(w.sets) + 1))
	for i, g := range f.groups() {
		if writes--; writes == 0 {
			return
		}
		marks := g.marks()
		for _, m := range w.sets[i].machines {
			if marks > 0 && !m.leaving && !m.available && !m.chosen && w.sets[i].number != g.number {
				m.chosen = true
				marks--
			}
		}
		w.sets[i].number = g.number
	}
	w.last = w.replicas
}

// follow does what a MachineSet does, one Machine at a time.
func (w *world) follow(s *modelSet) {
	var alive []*modelMachine
	for _, m := range s.machines {
		if !m.leaving {
			alive = append(alive, m)
		}
	}
	switch {
	case len(alive) < s.number:
		s.machines = append(s.machines, &modelMachine{})
	case len(alive) > s.number:
		w.random.Shuffle(len(alive), func(i, j int) { alive[i], alive[j] = alive[j], alive[i] })
		slices.SortStableFunc(alive, func(x, y *modelMachine) int {
			switch {
			case x.chosen == y.chosen:
				return 0
			case x.chosen:
				return -1
			}
			return 1
		})
		alive[0].leaving, alive[0].available = true, false
	}
}

// live lets the Machines of a set live on.
func (w *world) live(s *modelSet) {
	for i := 0; i < len(s.machines); i++ {
		m := s.machines[i]
		switch {
		case m.leaving && w.random.Intn(3) == 0:
			s.machines = slices.Delete(s.machines, i, i+1)
			i--
		case !m.leaving && !m.available && !m.failed && !s.broken && w.random.Intn(3) == 0:
			m.available = true
		}
	}
}

func (w *world) available() (available int) {
	for _, s := range w.sets {
		for _, m := range s.machines {
			if m.available {
				available++
			}
		}
	}
	return available
}

// disturb is something that people or clouds do.
func (w *world) disturb() {
	switch w.random.Intn(6) {
	case 0: // a new revision, perhaps a bad one, at times instead of one that is not finished
		w.sets[len(w.sets)-1].keep = w.random.Intn(2) == 0 && !w.recreate
		w.sets = append(w.sets, &modelSet{broken: w.random.Intn(3) == 0})
		w.note("revision")
	case 1: // undo
		if len(w.sets) > 1 {
			at := w.random.Intn(len(w.sets) - 1)
			undone := w.sets[at]
			undone.keep = false
			w.sets = append(slices.Delete(w.sets, at, at+1), undone)
			w.note("undo")
		}
	case 2:
		w.replicas = w.random.Intn(8)
		w.note(fmt.Sprint("replicas ", w.replicas))
	case 3: // a Machine's Node fails
		s := w.sets[w.random.Intn(len(w.sets))]
		for _, m := range s.machines {
			if m.available {
				m.available, m.failed = false, true
				w.note("failure")
				break
			}
		}
	case 4: // an autoscaler's choice
		s := w.sets[w.random.Intn(len(w.sets))]
		if len(s.machines) > 0 {
			s.machines[w.random.Intn(len(s.machines))].chosen = true
			w.replicas = max(0, w.replicas-1)
			w.note("choice")
		}
	case 5: // somebody repairs the revision
		for _, s := range w.sets {
			s.broken = false
			for _, m := range s.machines {
				m.failed = false
			}
		}
		w.note("repair")
	}
}

func (w *world) note(what string) { w.log = append(w.log, what) }

// step does one random thing, and returns which bound it broke.
func (w *world) step() string {
	before := w.fleet()
	set := w.sets[w.random.Intn(len(w.sets))]
	switch w.random.Intn(4) {
	case 0:
		w.reconcile()
	case 1:
		w.follow(set)
	case 2:
		w.live(set)
	case 3:
		w.move(set)
	}
	after, needed := w.fleet(), w.replicas-w.unavailable
	if safe := after.safe(); safe < min(before.safe(), needed) && after.unchosen() < min(before.unchosen(), needed) &&
		!w.recreate {
		return fmt.Sprintf("%d Machines surely stay available, %d before, want %d", safe, before.safe(), needed)
	}
	if total := after.total(); total > max(before.total(), w.replicas+w.surge) {
		return fmt.Sprintf("%d Machines in all, %d before, want %d", total, before.total(), w.replicas+w.surge)
	}
	return ""
}

// unchosen is safe without the Machines that are chosen: a MachineSet deletes these first, whatever
// else is unavailable.
func (f *fleet) unchosen() int {
	return f.sum(func(g *group) int {
		return g.available - g.chosenAvailable - max(0, g.pending()-g.chosenAvailable)
	})
}

// move changes a Machine in place.
func (w *world) move(from *modelSet) {
	current := w.sets[len(w.sets)-1]
	f := w.fleet()
	at := slices.Index(w.sets, from)
	if !from.keep || from == current || !f.current.settled() || !f.groups()[at].settled() {
		return
	}
	for i, m := range from.machines {
		if !m.leaving {
			from.machines = slices.Delete(from.machines, i, i+1)
			current.machines = append(current.machines, m)
			from.number--
			current.number++
			return
		}
	}
}

// calm lets the world run without disturbances until it is as wanted, and reports whether it got there.
func (w *world) calm() bool {
	for _, s := range w.sets {
		s.broken, s.keep = false, false
		for _, m := range s.machines {
			m.failed = false
		}
	}
	for range 3000 {
		if w.done() {
			return true
		}
		w.reconcile()
		for _, s := range w.sets {
			w.follow(s)
			w.live(s)
		}
	}
	return w.done()
}

func (w *world) done() bool {
	for i, s := range w.sets {
		want := 0
		if i == len(w.sets)-1 {
			want = w.replicas
		}
		if len(s.machines) != want || s.number != want {
			return false
		}
	}
	return w.available() == w.replicas
}

func newWorld(seed int64) *world {
	random := rand.New(rand.NewSource(seed))
	w := &world{random: random, replicas: random.Intn(8), surge: random.Intn(3), unavailable: random.Intn(3),
		recreate: random.Intn(8) == 0, sets: []*modelSet{{}}}
	if w.surge+w.unavailable == 0 {
		w.unavailable = 1
	}
	if w.recreate {
		w.surge = 0
	}
	return w
}

// TestARolloutKeepsItsBounds: no step lets the MachineSets delete an available Machine that is
// needed, or create one beyond the surge, whatever happens in between; and a rollout ends.
func TestARolloutKeepsItsBounds(t *testing.T) {
	for seed := range int64(3000) {
		w := newWorld(seed)
		if !w.calm() {
			t.Fatalf("seed %d: the first Machines do not come up: %+v", seed, w.fleet())
		}
		for range 1 + w.random.Intn(12) {
			w.disturb()
			for range w.random.Intn(40) {
				if broken := w.step(); broken != "" {
					t.Fatalf("seed %d: %s: %s\n%s", seed, broken, w, w.log)
				}
			}
		}
		if !w.calm() {
			t.Fatalf("seed %d: the rollout does not end: %s\n%s", seed, w, w.log)
		}
	}
}

func (w *world) String() string {
	text := fmt.Sprintf("replicas %d, surge %d, unavailable %d, recreate %t:", w.replicas, w.surge, w.unavailable, w.recreate)
	for _, g := range w.fleet().groups() {
		text += fmt.Sprintf(" %+v", *g)
	}
	return text
}
