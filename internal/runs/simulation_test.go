package runs

import (
	"container/heap"
	"errors"
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// simulation drives the decisions of a pool, without goroutines and by a clock of its own.
type simulation struct {
	t     *testing.T
	pool  *Pool
	clock *clocktesting.FakePassiveClock
	begin time.Time
	agenda
	// starting is called for each run that gets a worker.
	starting func(one *simulated, waited time.Duration)
	machines map[Key]*simulated
	running  map[string]int
}

// simulated is a Machine whose runs do the same again and again.
type simulated struct {
	Request
	// takes is how long a run takes; one that takes longer than its deadline hangs, and is cut off.
	takes time.Duration
	fails bool
	// rejects is asked when a run starts whether the infrastructure throttles it; nil for never. asks is the pause that it asks for.
	rejects func() bool
	asks    time.Duration
	// again is after which pause a run that succeeded is asked for anew; negative for never.
	again time.Duration

	submitted time.Duration
	tries     int
}

// cutOff is how long a run that hangs holds its worker beyond its deadline.
const cutOff = time.Minute

// agenda is what is to happen, by time.
type agenda struct {
	ordered[*happening]
	count int
}

type happening struct {
	at           time.Duration
	count, place int
	do           func()
}

func newSimulation(t *testing.T, options Options) *simulation {
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(begin)
	options.Clock = clock
	s := &simulation{
		t: t, pool: New(options), clock: clock, begin: begin, machines: map[Key]*simulated{}, running: map[string]int{},
		starting: func(*simulated, time.Duration) {},
	}
	s.before = func(a, b *happening) bool { return a.at < b.at || a.at == b.at && a.count < b.count }
	s.place = func(h *happening) *int { return &h.place }
	return s
}

func (s *simulation) now() time.Duration { return s.clock.Now().Sub(s.begin) }

func (s *simulation) at(at time.Duration, do func()) {
	s.count++
	heap.Push(&s.agenda, &happening{at: at, count: s.count, do: do})
}

// arrive lets a Machine ask for a run at some time, and from then on as its actuator does.
func (s *simulation) arrive(at time.Duration, one *simulated) {
	one.Key = Key(fmt.Sprintf("%s-%d", one.Group, len(s.machines)))
	one.Fingerprint = "f"
	s.machines[one.Key] = one
	s.at(at, func() { s.submit(one) })
}

func (s *simulation) submit(one *simulated) {
	status, err := s.pool.Submit(one.Request)
	if err != nil || status.Phase != Queued {
		s.t.Fatalf("submitting %s after %s: %v, %+v", one.Key, s.now(), err, status)
	}
	one.submitted = s.now()
	s.admit()
}

// admit starts what may start now.
func (s *simulation) admit() {
	for r := s.pool.admit(); r != nil; r = s.pool.admit() {
		one := s.machines[r.Key]
		s.starting(one, s.now()-one.submitted)
		one.tries++
		s.running[one.Group]++
		takes, timedOut := one.takes, one.takes > r.status.Deadline
		if timedOut {
			takes = r.status.Deadline + cutOff
		}
		var err error
		switch {
		case timedOut || one.fails:
			err = errors.New("no")
		case one.rejects != nil && one.rejects():
			err = fmt.Errorf("creating: %w", tooMany(one.asks))
		}
		s.at(s.now()+takes, func() { s.finish(r, one, err, timedOut) })
	}
}

func (s *simulation) finish(r *run, one *simulated, err error, timedOut bool) {
	s.running[one.Group]--
	s.pool.heed(r, err)
	if t := s.pool.queue.throttles[r.Credential]; t != nil {
		s.at(t.until.Sub(s.begin), s.admit)
	}
	s.pool.finish(r, err, timedOut)
	s.admit()
	if err != nil {
		s.at(r.status.RetryAt.Sub(s.begin), func() { s.submit(one) })
	} else if one.again >= 0 {
		s.at(s.now()+one.again, func() { s.submit(one) })
	}
}

// run lets time pass until some time.
func (s *simulation) run(until time.Duration) {
	for s.Len() > 0 && s.items[0].at <= until {
		next := heap.Pop(&s.agenda).(*happening)
		s.clock.SetTime(s.begin.Add(next.at))
		next.do()
	}
}

const forever = 1000 * time.Hour

func hanging(group string, operation Operation) *simulated {
	return &simulated{Request: Request{Group: group, Operation: operation}, takes: forever}
}

func short(group string, operation Operation) *simulated {
	return &simulated{Request: Request{Group: group, Operation: operation}, takes: 30 * time.Second, again: -1}
}

// firstStart returns when the first try of a Machine started, that joins others at a time; false
// when it never did.
func firstStart(s *simulation, one *simulated, at, until time.Duration) (waited time.Duration, started bool) {
	s.starting = func(starts *simulated, after time.Duration) {
		if starts == one && !started {
			waited, started = after, true
		}
	}
	s.arrive(at, one)
	s.run(until)
	return waited, started
}

func TestEightHangingRunsOfOneGroupDoNotBlockAnother(t *testing.T) {
	for _, operation := range precedence {
		s := newSimulation(t, Options{MaxConcurrent: 8})
		for range 8 {
			s.arrive(0, hanging("hangs", Create))
		}
		if waited, started := firstStart(s, short("other", operation), time.Minute, 500*time.Minute); !started || waited > 0 {
			t.Errorf("a %s waited %s (started: %t) for a worker that is kept free of any one group", operation, waited, started)
		}
	}
}

func TestSixteenHangingDestroysOfOneGroupDoNotStarveAnother(t *testing.T) {
	for workers := 1; workers <= 16; workers++ {
		for _, operation := range precedence {
			s := newSimulation(t, Options{MaxConcurrent: workers})
			for range 16 {
				s.arrive(0, hanging("hangs", Destroy))
			}
			waited, started := firstStart(s, short("other", operation), time.Minute, 500*time.Minute)
			if most := 30*time.Minute + cutOff; !started || waited > most || workers > 1 && waited > 0 {
				t.Errorf("%d workers: a %s waited %s (started: %t)", workers, operation, waited, started)
			}
		}
	}
}
