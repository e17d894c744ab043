package runs

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// atMost is how long a run may hold a worker in these simulations.
const atMost = 30*time.Minute + cutOff

// someone is a Machine that hangs, fails, or is well, of a group.
func someone(random *rand.Rand, group string) *simulated {
	one := short(group, precedence[random.IntN(len(precedence))])
	one.Credential = credentials[random.IntN(len(credentials))]
	one.takes = time.Duration(20+random.IntN(600)) * time.Second
	one.again = time.Duration(random.IntN(60)) * time.Second
	switch random.IntN(4) {
	case 0, 1:
		one.takes = forever
	case 2:
		one.fails = true
	}
	return one
}

// places returns how many of the workers that become free within atMost are given to groups in
// their turn, for runs like one.
func places(l limits, one *simulated) int {
	places := l.workers - 3*l.reserved
	if one.Credential != "" {
		places = min(places, l.perCredential-3*l.reserved)
	}
	if one.Operation == Drift {
		places = min(places, l.drift)
	}
	return places
}

// ahead counts the groups other than one's that wait and of which nothing runs.
func (s *simulation) ahead(group string) int {
	count := 0
	for name, of := range s.pool.queue.groups {
		if name != group && of.running == 0 && len(of.queues) > 0 {
			count++
		}
	}
	return count
}

// TestNoGroupKeepsAnotherFromItsFirstTry is the guarantee of the package's documentation, for
// groups of any number, size, operation, credential and conduct.
func TestNoGroupKeepsAnotherFromItsFirstTry(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := newSimulation(t, Options{MaxConcurrent: 1 + random.IntN(16)})
			for group := range 1 + random.IntN(12) {
				for range 1 + random.IntN(20) {
					s.arrive(time.Duration(random.IntN(120))*time.Minute, someone(random, fmt.Sprintf("group%d", group)))
				}
			}
			l, bounds, probes := s.pool.queue.limits, map[*simulated]time.Duration{}, map[*simulated]bool{}
			s.starting = func(one *simulated, waited time.Duration) {
				probes[one] = true
				if bound, known := bounds[one]; known && waited > bound {
					t.Errorf("the first %s of %s waited %s, more than %s, with %+v", one.Operation, one.Group, waited, bound, l)
				}
				delete(bounds, one)
			}
			var arrived []*simulated
			for i := range 10 {
				one := short(fmt.Sprintf("probe%d", i), precedence[i%len(precedence)])
				one.Credential = credentials[random.IntN(len(credentials))]
				arrival := time.Duration(60+random.IntN(180)) * time.Minute
				s.arrive(arrival, one)
				arrived = append(arrived, one)
				aged := time.Duration(one.Operation.rank()) * time.Minute
				s.at(arrival+aged, func() {
					if !probes[one] {
						turns := (s.ahead(one.Group) + places(l, one)) / places(l, one)
						bounds[one] = aged + time.Duration(turns)*atMost
					}
				})
			}
			s.run(16 * time.Hour)
			for _, one := range arrived {
				if !probes[one] {
					t.Errorf("the first %s of %s never started, with %+v", one.Operation, one.Group, l)
				}
			}
		})
	}
}

// TestAGroupsOwnRunsFollowEachOther says how long the others of a group wait beside one group that
// hangs.
func TestAGroupsOwnRunsFollowEachOther(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		s := newSimulation(t, Options{MaxConcurrent: 1 + random.IntN(16)})
		operation := precedence[random.IntN(3)]
		for range 40 {
			s.arrive(0, hanging("hangs", precedence[random.IntN(3)]))
		}
		l, started := s.pool.queue.limits, 0
		share := max(1, min(l.perGroup, l.workers-l.perGroup))
		s.starting = func(one *simulated, waited time.Duration) {
			if one.Group != "other" || one.tries > 0 {
				return
			}
			deadlines := 1 + started/share
			if l.workers == 1 { // the groups take turns
				deadlines *= 2
			}
			if most := 2*time.Minute + time.Duration(deadlines)*atMost; waited > most {
				t.Errorf("seed %d: %s number %d waited %s, more than %s, with %+v", seed, operation, started, waited, most, l)
			}
			started++
		}
		for range 20 {
			s.arrive(time.Hour, hanging("other", operation))
		}
		s.run(40 * time.Hour)
		if started != 20 {
			t.Errorf("seed %d: %d of 20 started, with %+v", seed, started, l)
		}
	}
}
