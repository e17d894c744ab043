// Package memory says whether there is memory for one more engine beside those that run, so that none is killed for want of it. A run is
// expected to take what the largest of the earlier runs of its module took; what runs, providers between them, and this process really take is
// sampled. It knows no Kubernetes.
package memory

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

const (
	// Unknown is what a run of a module is expected to take until one was seen: what the largest providers take to start.
	Unknown = 512 << 20
	// samplePause is how long nothing is sampled between two samples. A run of a small module takes about a second.
	samplePause = 250 * time.Millisecond
	// headroom is what is added to the largest sample, a quarter: a sample may miss the peak.
	headroom = 4
	// forgetting is the part of a difference by which an expectation sinks with a run that took less.
	forgetting = 4
	// maxFootprints bounds what is remembered; beyond it everything is learned anew.
	maxFootprints = 1000
)

// Options configures a Budget.
type Options struct {
	// Limit is how much all of it may take, in bytes; zero for no bound, and then nothing is sampled either.
	Limit int64
	// Dir is the folder that the engines work in, as the kernel reports it.
	Dir string
	// Usage reads what the processes take; nil for /proc.
	Usage  func(dir string) (Usage, error)
	Clock  clock.Clock
	Logger logr.Logger
}

// Usage is what processes take, in bytes: memory that only they can give back.
type Usage struct {
	// Runs has what the processes in the folder of each run take, by the name of the folder.
	Runs map[string]int64
	// Shared is what this process, processes between runs, and files in memory take.
	Shared int64
}

// Budget is the memory that runs share. It is safe for concurrent use.
type Budget struct {
	options Options

	mu     sync.Mutex
	shared int64
	// running are the runs that have started and not ended, by name.
	running map[string]*taken
	// expected is what a run of a footprint is expected to take.
	expected map[string]int64
	// begun wakes the sampling.
	begun chan struct{}
	// held says that a run did not fit, so that it is logged once.
	held bool

	limitSeries, expectedSeries prometheus.GaugeFunc
}

// taken is what one run takes.
type taken struct {
	footprint string
	// most is the largest sample; zero before there is one.
	most int64
}

// New makes a budget. Its series are there at once; Start samples.
func New(o Options) *Budget {
	if o.Usage == nil {
		o.Usage = read
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	b := &Budget{options: o, running: map[string]*taken{}, expected: map[string]int64{}, begun: make(chan struct{}, 1)}
	b.limitSeries = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "machine_iac_memory_limit_bytes", Help: "What the manager and its engines may take; zero without a bound.",
	}, func() float64 { return float64(o.Limit) })
	b.expectedSeries = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "machine_iac_memory_expected_bytes", Help: "What the manager takes, and the runs that execute are expected to take; zero without a bound.",
	}, func() float64 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return float64(b.inUse())
	})
	return b
}

// Describe implements prometheus.Collector.
func (b *Budget) Describe(descriptions chan<- *prometheus.Desc) {
	b.limitSeries.Describe(descriptions)
	b.expectedSeries.Describe(descriptions)
}

// Collect implements prometheus.Collector.
func (b *Budget) Collect(series chan<- prometheus.Metric) {
	b.limitSeries.Collect(series)
	b.expectedSeries.Collect(series)
}

// Fits reports whether there is memory for a run of a footprint beside those that run.
func (b *Budget) Fits(footprint string) bool {
	if b.options.Limit == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	needed, inUse := b.expectedOf(footprint), b.inUse()
	fits := inUse+needed <= b.options.Limit
	if !fits && !b.held {
		b.options.Logger.Info("Runs wait for memory", "limit", b.options.Limit, "inUse", inUse, "needed", needed, "running", len(b.running))
	}
	b.held = !fits
	return fits
}

// Started notes that a run, which works in the folder of that name, has begun.
func (b *Budget) Started(run, footprint string) {
	if b.options.Limit == 0 {
		return
	}
	b.mu.Lock()
	b.running[run] = &taken{footprint: footprint}
	b.mu.Unlock()
	select {
	case b.begun <- struct{}{}:
	default: // it is awake
	}
}

// Ended notes that a run has ended, and learns from it.
func (b *Budget) Ended(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.running[run]
	delete(b.running, run)
	if was == nil || was.most == 0 {
		return // too short to be seen
	}
	before, known := b.expected[was.footprint]
	if !known && len(b.expected) >= maxFootprints {
		clear(b.expected)
	}
	if known && was.most < before {
		was.most = before - (before-was.most)/forgetting
	}
	b.expected[was.footprint] = was.most
}

// expectedOf returns what a run is expected to take. The caller holds the lock.
func (b *Budget) expectedOf(footprint string) int64 {
	most, known := b.expected[footprint]
	if !known {
		return Unknown
	}
	return most + most/headroom
}

// inUse is what is taken, and what runs that have begun will take. The caller holds the lock.
func (b *Budget) inUse() int64 {
	sum := b.shared
	for _, one := range b.running {
		sum += max(b.expectedOf(one.footprint), one.most)
	}
	return sum
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only a leader has runs.
func (b *Budget) NeedLeaderElection() bool { return true }

// Start samples, while there are runs, until ctx ends.
func (b *Budget) Start(ctx context.Context) error {
	if b.options.Limit == 0 {
		<-ctx.Done()
		return nil
	}
	for {
		if !b.sample() {
			select {
			case <-ctx.Done():
				return nil
			case <-b.begun:
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.options.Clock.After(samplePause):
		}
	}
}

// sample reads what is taken now, and reports whether there are runs.
func (b *Budget) sample() bool {
	usage, err := b.options.Usage(b.options.Dir)
	if err != nil {
		b.options.Logger.Error(err, "reading how much memory is used; what is known of it stays")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.shared = usage.Shared
		for name, used := range maps.All(usage.Runs) {
			if one := b.running[runOf(name)]; one != nil {
				one.most = max(one.most, used)
			}
		}
	}
	return len(b.running) > 0
}

// runOf returns the run that a folder belongs to: a lookup's has an ending, after the UUID of the run.
func runOf(folder string) string {
	const uuid = 36
	return folder[:min(uuid, len(folder))]
}
