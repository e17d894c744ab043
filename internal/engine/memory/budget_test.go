package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

const mib = 1 << 20

// sampled is a budget whose processes take what a test says.
type sampled struct {
	*Budget
	usage Usage
	err   error
}

func newSampled(limit int64) *sampled {
	s := &sampled{}
	s.Budget = New(Options{Limit: limit, Logger: logr.Discard(), Usage: func(string) (Usage, error) { return s.usage, s.err }})
	return s
}

// run lets a run take so much at most.
func (s *sampled) run(name, footprint string, most int64) {
	s.Started(name, footprint)
	s.usage.Runs = map[string]int64{name: most}
	s.sample()
	s.usage.Runs = map[string]int64{name: most / 2}
	s.sample()
	s.usage.Runs = nil
	s.Ended(name)
}

func TestWhatFits(t *testing.T) {
	for name, tc := range map[string]struct {
		limit  int64
		before func(*sampled)
		want   int
	}{
		"a run of an unknown module takes what the largest providers take": {2 * Unknown, func(*sampled) {}, 2},
		"one of a known module what its largest has taken, and a quarter":  {1000 * mib, func(s *sampled) { s.run("a", "small", 80*mib) }, 10},
		"what is shared is not free": {1000 * mib, func(s *sampled) {
			s.usage.Shared = 500 * mib
			s.run("a", "small", 80*mib)
		}, 5},
		"a run that takes more than expected counts with that": {1000 * mib, func(s *sampled) {
			s.run("a", "small", 80*mib)
			s.Started("b", "small")
			s.usage.Runs = map[string]int64{"b": 700 * mib}
			s.sample()
		}, 3},
		"a larger run is expected again at once": {1000 * mib, func(s *sampled) {
			s.run("a", "small", 80*mib)
			s.run("b", "small", 160*mib)
		}, 5},
		"a smaller run lowers it by a quarter of the difference": {1000 * mib, func(s *sampled) {
			s.run("a", "small", 400*mib)
			s.run("b", "small", 40*mib)
		}, 2}, // 310 and a quarter of that
		"a run that was not seen teaches nothing": {1000 * mib, func(s *sampled) {
			s.Started("a", "small")
			s.Ended("a")
		}, 1},
		"processes of a folder that is no run's are nobody's": {1000 * mib, func(s *sampled) {
			s.usage.Runs = map[string]int64{"x": 900 * mib}
			s.sample()
		}, 1},
		"where nothing can be read, what is known stays": {1000 * mib, func(s *sampled) {
			s.run("a", "small", 80*mib)
			s.err = errors.New("no /proc")
			s.Started("b", "small")
			s.sample()
			s.Ended("b")
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSampled(tc.limit)
			tc.before(s)
			got := 0
			for ; got < 100 && s.Fits("small"); got++ {
				s.Started(fmt.Sprint("run", got), "small")
			}
			if got != tc.want {
				t.Errorf("%d runs fit, want %d", got, tc.want)
			}
		})
	}
}

func TestWithoutALimitEverythingFits(t *testing.T) {
	b := New(Options{Usage: func(string) (Usage, error) { panic("nothing is sampled") }})
	for range 100 {
		b.Started("a", "large")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := b.Start(ctx); err != nil || !b.Fits("large") || b.inUse() != 0 {
		t.Errorf("%v, %d in use", err, b.inUse())
	}
}

func TestALookupCountsAsItsRun(t *testing.T) {
	s := newSampled(1000 * mib)
	const run = "0e3fb6b4-8a3e-4b73-9d3b-0e8a6b5f3c11"
	s.Started(run, "small")
	s.usage.Runs = map[string]int64{run + "-lookup": 300 * mib}
	s.sample()
	s.Ended(run)
	if got := s.expectedOf("small"); got != 375*mib {
		t.Errorf("expected are %d MiB", got/mib)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	s := newSampled(1000 * mib)
	for i := range 3 * maxFootprints {
		s.run("a", fmt.Sprint("module", i), mib)
	}
	if got := len(s.expected); got == 0 || got > maxFootprints {
		t.Errorf("%d modules are remembered", got)
	}
}

func TestItSamplesWhileThereAreRuns(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	clock := clocktesting.NewFakeClock(time.Now())
	samples := make(chan struct{}, 100)
	b := New(Options{Limit: 1, Clock: clock, Logger: logr.Discard(), Usage: func(string) (Usage, error) {
		samples <- struct{}{}
		return Usage{}, nil
	}})
	ended := make(chan error, 1)
	go func() { ended <- b.Start(ctx) }()
	<-samples // the first, with no run
	b.Started("a", "small")
	for range 3 {
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		clock.Step(samplePause)
		<-samples
	}
	b.Ended("a")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheSeriesSayWhatIsTaken(t *testing.T) {
	s := newSampled(1000 * mib)
	s.usage.Shared = 100 * mib
	s.run("a", "small", 80*mib)
	s.Started("b", "small")
	const want = `
# HELP machine_iac_memory_expected_bytes Memory that the manager uses and its running runs are expected to use, or zero without a limit.
# TYPE machine_iac_memory_expected_bytes gauge
machine_iac_memory_expected_bytes 2.097152e+08
# HELP machine_iac_memory_limit_bytes Memory for the manager and its engines, or zero without a limit.
# TYPE machine_iac_memory_limit_bytes gauge
machine_iac_memory_limit_bytes 1.048576e+09
`
	if err := testutil.CollectAndCompare(s.Budget, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
