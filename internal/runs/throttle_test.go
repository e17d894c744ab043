package runs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// tooMany is the error of a run that the infrastructure throttles, and the pause that it asks for.
type tooMany time.Duration

func (tooMany) Error() string                      { return "429 Too Many Requests" }
func (m tooMany) Throttled() (time.Duration, bool) { return time.Duration(m), true }

// cloud throttles requests beyond so many a minute.
type cloud struct {
	s                  *simulation
	perMinute          int
	accepted, rejected []time.Duration
}

func (c *cloud) rejects() bool {
	recent := 0
	for _, at := range c.accepted {
		if c.s.now()-at < time.Minute {
			recent++
		}
	}
	if recent >= c.perMinute {
		c.rejected = append(c.rejected, c.s.now())
		return true
	}
	c.accepted = append(c.accepted, c.s.now())
	return false
}

// fleet lets Machines of one group arrive at once, whose runs use a credential.
func (s *simulation) fleet(count int, credential string, operation Operation, change func(*simulated)) {
	for range count {
		one := short("set-"+credential, operation)
		one.Credential, one.takes = credential, 2*time.Second
		change(one)
		s.arrive(0, one)
	}
}

// most returns the largest number of times within a minute.
func most(times []time.Duration) (most int) {
	for i, at := range times {
		recent := 0
		for _, other := range times[:i+1] {
			if at-other < time.Minute {
				recent++
			}
		}
		most = max(most, recent)
	}
	return most
}

func TestAThrottledCredentialMakesAHandfulOfAttemptsAMinute(t *testing.T) {
	for _, operation := range precedence {
		t.Run(string(operation), func(t *testing.T) {
			s := newSimulation(t, Options{MaxConcurrent: 8})
			none := &cloud{s: s}
			s.fleet(20, "throttled", operation, func(one *simulated) { one.rejects = none.rejects })
			others := 0
			s.fleet(20, "other", operation, func(one *simulated) { one.again = 30 * time.Second })
			s.starting = func(one *simulated, waited time.Duration) {
				if one.Credential != "other" {
					return
				}
				if others++; waited > time.Minute {
					t.Errorf("a run of another credential waited %s", waited)
				}
			}
			s.run(time.Hour)
			if got := most(none.rejected); got > 8+4 {
				t.Errorf("%d attempts within the worst minute, want at most the 8 that start at once and a handful", got)
			}
			var later []time.Duration
			for _, at := range none.rejected {
				if at > time.Minute {
					later = append(later, at)
				}
			}
			if got := most(later); got > 2 || len(later) < 5 {
				t.Errorf("%d attempts in the hour, up to %d a minute; want some, and one or two a minute", len(later), got)
			}
			if others < 1000 {
				t.Errorf("%d runs of the other credential, want one of 20 Machines each 32 seconds or so", others)
			}
		})
	}
}

func TestAThrottledCredentialKeepsThePaceThatTheCloudAllows(t *testing.T) {
	for _, perMinute := range []int{1, 6, 30} {
		t.Run(fmt.Sprint(perMinute), func(t *testing.T) {
			s := newSimulation(t, Options{MaxConcurrent: 8})
			c := &cloud{s: s, perMinute: perMinute}
			const machines = 100
			s.fleet(machines, "throttled", Create, func(one *simulated) { one.rejects = c.rejects })
			s.run(12 * time.Hour)
			if len(c.accepted) != machines {
				t.Fatalf("%d of %d Machines made", len(c.accepted), machines)
			}
			took, least := c.accepted[machines-1], time.Duration(machines/perMinute)*time.Minute
			t.Logf("%s (at best %s), %d rejected", took, least, len(c.rejected))
			if took > 3*least+15*time.Minute || len(c.rejected) > 2*machines {
				t.Errorf("took %s, at best %s, and %d were rejected", took, least, len(c.rejected))
			}
		})
	}
}

func TestAllWorkersAreBackWhenTheThrottlingIsOver(t *testing.T) {
	s := newSimulation(t, Options{MaxConcurrent: 8})
	over := 10 * time.Minute
	s.fleet(40, "throttled", Create, func(one *simulated) {
		one.again, one.rejects = 0, func() bool { return s.now() < over }
	})
	s.run(over + 11*time.Minute)
	if t := s.pool.queue.throttles["throttled"]; t != nil {
		s.t.Errorf("still throttled: %+v", t)
	}
	if got := s.running["set-throttled"]; got != 7 {
		t.Errorf("%d runs, want all workers but the one that is kept for another group", got)
	}
}

func TestOfRunsThatAreThrottledAtOnceOneCounts(t *testing.T) {
	s := newSimulation(t, Options{MaxConcurrent: 8})
	s.fleet(8, "throttled", Create, func(one *simulated) { one.rejects = func() bool { return true } })
	s.run(4 * time.Second)
	found := s.pool.queue.throttles["throttled"]
	if found == nil || found.strikes != 1 || found.most != 1 || found.until.Sub(s.begin) != 7*time.Second {
		t.Errorf("got %+v, want one strike, one run and a pause of 5 seconds", found)
	}
	s.clock.SetTime(s.begin.Add(4 * time.Second))
	want := `# HELP machine_iac_credentials_throttled_seconds Seconds since the infrastructure began to throttle a credentials Secret. Absent while it does not.
# TYPE machine_iac_credentials_throttled_seconds gauge
machine_iac_credentials_throttled_seconds{credentials="throttled"} 2
`
	if err := testutil.CollectAndCompare(s.pool.options.Metrics, strings.NewReader(want), "machine_iac_credentials_throttled_seconds"); err != nil {
		t.Error(err)
	}
	status, _ := s.pool.Status("set-throttled-0")
	if status.ThrottledSince.Sub(s.begin) != 2*time.Second {
		t.Errorf("a run that waits was throttled since %s", status.ThrottledSince)
	}
}

func TestAThrottledCredentialWaitsAsLongAsTheCloudAsks(t *testing.T) {
	s := newSimulation(t, Options{MaxConcurrent: 8})
	asks := []time.Duration{time.Second, 90 * time.Second, 20 * time.Second} // of runs that start at once
	var started []time.Duration
	s.fleet(len(asks), "throttled", Create, func(one *simulated) {
		one.rejects, one.asks = func() bool { return one.tries == 1 }, asks[len(s.machines)]
	})
	s.starting = func(*simulated, time.Duration) { started = append(started, s.now()) }
	s.run(5 * time.Minute)
	// All are rejected after 2 seconds.
	if first := started[len(asks)]; first != 92*time.Second {
		t.Errorf("runs started at %s, want the next one 90 seconds after the rejection", started)
	}
}

func TestThrottlingIsForgottenWithoutFurtherRuns(t *testing.T) {
	s := newSimulation(t, Options{MaxConcurrent: 2})
	s.fleet(1, "gone", Create, func(one *simulated) { one.rejects = func() bool { return true } })
	s.run(3 * time.Second)
	if _, slowed := s.pool.queue.throttles["gone"]; !slowed {
		t.Fatal("not throttled")
	}
	s.pool.prune(s.begin.Add(2 * time.Hour))
	if len(s.pool.queue.throttles) > 0 {
		t.Errorf("remembered after two hours: %+v", s.pool.queue.throttles)
	}
}

// An old run asks for a long pause, and a newer one is rejected meanwhile without asking for any.
func TestALaterRejectionDoesNotShortenAPause(t *testing.T) {
	s := newSimulation(t, Options{MaxConcurrent: 8})
	s.clock.SetTime(s.begin)
	rejected := func(started, asked time.Duration) {
		one := &run{}
		one.Credential, one.status.StartedAt = "throttled", s.begin.Add(started)
		s.pool.heed(one, tooMany(asked))
	}
	rejected(0, 0)
	rejected(-time.Second, 20*time.Minute)
	rejected(time.Second, 0)
	if got := s.pool.queue.throttles["throttled"].until.Sub(s.begin); got != 20*time.Minute {
		t.Errorf("the pause lasts %s, want 20m", got)
	}
}
