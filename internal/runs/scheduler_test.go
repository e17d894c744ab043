package runs

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var midnight = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// waiting is a run that was submitted some minutes after midnight.
func waiting(name, group, credential string, operation Operation, minute int) *run {
	return &run{
		Request: Request{Key: Key(name), Group: group, Credential: credential, Operation: operation},
		status:  Status{Operation: operation, QueuedAt: midnight.Add(time.Duration(minute) * time.Minute)},
	}
}

// admit starts the next run.
func (s *scheduler) admit(now time.Time) (*run, string) {
	next, pick := s.pick(now)
	if next != nil {
		s.start(next, now)
	}
	return next, pick
}

func TestTheNextRun(t *testing.T) {
	wide := limits{workers: 4, drift: 4, perGroup: 4, perCredential: 4, alone: 4, aging: time.Minute}
	with := func(change func(*limits)) limits {
		l := wide
		change(&l)
		return l
	}
	for name, tc := range map[string]struct {
		limits           limits
		running, waiting []*run
		want             []string
	}{
		"precedence between runs of the same age": {
			wide, nil,
			[]*run{waiting("drift", "a", "", Drift, 9), waiting("update", "b", "", Update, 9), waiting("create", "c", "", Create, 9), waiting("destroy", "d", "", Destroy, 9)},
			[]string{"destroy turn", "create turn", "update turn", "drift turn"},
		},
		"a rank is worth a minute of waiting": {
			wide, nil,
			[]*run{waiting("drift", "a", "", Drift, 5), waiting("update", "b", "", Update, 8), waiting("create", "c", "", Create, 6), waiting("destroy", "d", "", Destroy, 9)},
			[]string{"create aged", "drift aged", "destroy turn", "update turn"},
		},
		"a group with fewer running runs comes before precedence": {
			wide, []*run{waiting("", "a", "", Create, 0)},
			[]*run{waiting("destroy", "a", "", Destroy, 1), waiting("drift", "b", "", Drift, 9)},
			[]string{"drift aged", "destroy turn"},
		},
		"an operation below its share comes before both": {
			with(func(l *limits) { l.reserved = 1 }), []*run{waiting("", "a", "", Destroy, 0)},
			[]*run{waiting("destroy", "b", "", Destroy, 1), waiting("create", "a", "", Create, 9), waiting("create2", "c", "", Create, 9)},
			[]string{"create2 reserved", "destroy turn", "create turn"},
		},
		"drift checks have a quota that is never lifted": {
			with(func(l *limits) { l.drift = 1 }), nil,
			[]*run{waiting("d1", "a", "", Drift, 1), waiting("d2", "b", "", Drift, 1)},
			[]string{"d1 turn"},
		},
		"a group at its cap lets others go first and leaves one worker alone": {
			with(func(l *limits) { l.perGroup, l.alone = 1, 2 }), []*run{waiting("", "a", "", Create, 0)},
			[]*run{waiting("a1", "a", "", Create, 1), waiting("a2", "a", "", Create, 1), waiting("b1", "b", "", Drift, 9)},
			[]string{"b1 turn", "a1 lifted"},
		},
		"a credential at its cap lets others go first": {
			with(func(l *limits) { l.perCredential = 1 }), []*run{waiting("", "a", "k", Create, 0)},
			[]*run{waiting("b1", "b", "k", Create, 1), waiting("c1", "c", "l", Create, 9), waiting("d1", "d", "", Create, 9)},
			[]string{"c1 turn", "d1 turn", "b1 lifted"},
		},
		"no credential has no cap": {
			with(func(l *limits) { l.perCredential = 1 }), []*run{waiting("", "a", "", Create, 0)},
			[]*run{waiting("b1", "b", "", Create, 1)},
			[]string{"b1 turn"},
		},
		"the runs of one group go by their own age": {
			wide, []*run{waiting("", "a", "", Create, 0)},
			[]*run{waiting("create", "a", "", Create, 1), waiting("destroy", "a", "", Destroy, 3)},
			[]string{"create aged", "destroy turn"},
		},
		"also with several credentials": {
			wide, []*run{waiting("", "a", "", Create, 0)},
			[]*run{waiting("a1", "a", "k", Create, 1), waiting("a2", "a", "l", Create, 2), waiting("a3", "a", "k", Create, 3)},
			[]string{"a1 turn", "a2 turn", "a3 turn"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScheduler(tc.limits)
			for _, r := range tc.running {
				s.push(r)
				s.admit(midnight.Add(5 * time.Minute))
			}
			for _, r := range tc.waiting {
				s.push(r)
			}
			var got []string
			for next, pick := s.admit(midnight.Add(10 * time.Minute)); next != nil; next, pick = s.admit(midnight.Add(10 * time.Minute)) {
				got = append(got, string(next.Key)+" "+pick)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// plain picks as a scheduler does, by looking at everything that waits.
func plain(s *scheduler, queue []*run, now time.Time, lifted bool) *run {
	most := s.limits.perGroup
	if lifted {
		most = s.limits.alone
	}
	var best *run
	var first [4]*run
	for rank, operation := range precedence {
		for _, r := range queue {
			switch of := s.groups[r.Group]; {
			case r.Operation != operation || of.running >= most || s.capped(r.Credential, now, lifted) || s.operations[operation].running >= s.operations[operation].most:
			case first[rank] == nil || plainOrder(s, r, first[rank]) < 0:
				first[rank] = r
			}
		}
		r := first[rank]
		if r == nil {
			continue
		}
		below := func(r *run) bool { return s.operations[r.Operation].running < s.operations[r.Operation].least }
		if best == nil || below(r) && !below(best) || below(r) == below(best) && s.precedes(r.queue, best.queue) {
			best = r
		}
	}
	return best
}

// plainOrder compares runs of one operation.
func plainOrder(s *scheduler, a, b *run) int {
	of, other := s.groups[a.Group], s.groups[b.Group]
	for _, by := range [][2]int{{of.running, other.running}, {int(max(of.sequence, a.sequence)), int(max(other.sequence, b.sequence))}, {int(a.sequence), int(b.sequence)}} {
		if by[0] != by[1] {
			return by[0] - by[1]
		}
	}
	return 0
}

var credentials = []string{"", "", "one", "one", "two"}

func TestTheSchedulerPicksWhatAPlainSearchPicks(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 3))
		options := Options{MaxConcurrent: 1 + random.IntN(12)}
		options.setDefaults()
		s := newScheduler(options.limits())
		var queue, running []*run
		drop := func(from *[]*run, i int) *run {
			r := (*from)[i]
			*from = append((*from)[:i:i], (*from)[i+1:]...)
			return r
		}
		for minute := range 600 {
			switch now := midnight.Add(time.Duration(minute) * time.Minute); random.IntN(8) {
			case 0, 1, 2, 3:
				r := waiting("", fmt.Sprint(random.IntN(6)), credentials[random.IntN(len(credentials))], precedence[random.IntN(4)], minute)
				s.push(r)
				queue = append(queue, r)
			case 4:
				if len(queue) > 0 {
					s.remove(drop(&queue, random.IntN(len(queue))))
				}
			case 5:
				if len(running) > 0 {
					s.release(drop(&running, random.IntN(len(running))), now)
				}
			default:
				if random.IntN(20) == 0 {
					s.throttles["one"] = &throttle{most: 1 + random.IntN(3), until: now.Add(time.Duration(random.IntN(10)) * time.Minute)}
				}
				want := plain(s, queue, now, false)
				if want == nil {
					want = plain(s, queue, now, true)
				}
				if len(running) >= s.limits.workers {
					want = nil
				}
				got, _ := s.admit(now)
				if got != want {
					t.Fatalf("seed %d, minute %d: picked %+v, want %+v", seed, minute, got, want)
				}
				for i, r := range queue {
					if r == got {
						running = append(running, drop(&queue, i))
						break
					}
				}
			}
			if s.waiting != len(queue) || s.running != len(running) || len(s.groups) > len(queue)+len(running) || len(s.credentials) > len(running) {
				t.Fatalf("seed %d, minute %d: %d wait, %d run in %d groups; want %d and %d", seed, minute, s.waiting, s.running, len(s.groups), len(queue), len(running))
			}
		}
	}
}

// BenchmarkScheduler lets one run end, the next start, and another one wait, while ten thousand
// wait.
func BenchmarkScheduler(b *testing.B) {
	for name, of := range map[string]struct{ groups, credentials int }{
		"1 group": {1, 1}, "100 groups": {100, 10}, "10000 groups": {10000, 1}, "10000 credentials": {10000, 10000}, "1 group, 10000 credentials": {1, 10000},
	} {
		b.Run(name, func(b *testing.B) {
			options := Options{MaxConcurrent: 8}
			options.setDefaults()
			s := newScheduler(options.limits())
			for i := range 10000 {
				s.push(waiting("", fmt.Sprint(i%of.groups), fmt.Sprint(i%of.credentials), precedence[i%4], 0))
			}
			var running []*run
			for r, _ := s.admit(midnight); r != nil; r, _ = s.admit(midnight) {
				running = append(running, r)
			}
			for i := 0; b.Loop(); i++ {
				r := running[i%len(running)]
				s.release(r, midnight)
				s.push(r)
				running[i%len(running)], _ = s.admit(midnight)
			}
		})
	}
}
