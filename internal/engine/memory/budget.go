// Package memory reports whether there is enough memory for another engine, so that none gets
// killed. A run is expected to use as much as the largest earlier run of its module. The actual
// usage of runs, warm providers and this process is sampled. The package knows nothing about
// Kubernetes.
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
	// Unknown is the expected usage of a module's first run: what the largest providers need to start.
	Unknown = 512 << 20
	// samplePause is the time between two samples. A run of a small module takes about a second.
	samplePause = 250 * time.Millisecond
	// headroom is added to the largest sample, as a fraction (a quarter): a sample may miss the peak.
	headroom = 4
	// forgetting is the fraction of the difference by which an expectation drops after a run that used
	// less.
	forgetting = 4
	// maxFootprints limits what is remembered; beyond it, everything is learned again.
	maxFootprints = 1000
)

// Options configures a Budget.
type Options struct {
	// Limit is the total memory limit in bytes. Zero means no limit, and disables sampling.
	Limit int64
	// Dir is the folder that the engines work in, as the kernel reports it.
	Dir string
	// Usage samples the processes. Defaults to reading /proc.
	Usage  func(dir string) (Usage, error)
	Clock  clock.Clock
	Logger logr.Logger
}

// Usage is what processes use, in bytes, of memory that only they can free.
type Usage struct {
	// Runs is the usage of the processes in the folder of each run, by folder name.
	Runs map[string]int64
	// Shared is the usage of this process, processes between runs, and files in memory.
	Shared int64
}

// Budget is the memory that runs share. It is safe for concurrent use.
type Budget struct {
	options Options

	mu     sync.Mutex
	shared int64
	// running are the active runs, by name.
	running map[string]*taken
	// expected is the expected usage of a run with a footprint.
	expected map[string]int64
	// begun wakes the sampling.
	begun chan struct{}
	// held means that a run did not fit, so that this is logged only once.
	held bool

	limitSeries, expectedSeries prometheus.GaugeFunc
}

// taken is the usage of one run.
type taken struct {
	footprint string
	// most is the largest sample, or zero.
	most int64
}

// New returns a budget. Its metrics work immediately; Start samples.
func New(o Options) *Budget {
	if o.Usage == nil {
		o.Usage = read
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	b := &Budget{options: o, running: map[string]*taken{}, expected: map[string]int64{}, begun: make(chan struct{}, 1)}
	b.limitSeries = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "machine_iac_memory_limit_bytes", Help: "Memory for the manager and its engines, or zero without a limit.",
	}, func() float64 { return float64(o.Limit) })
	b.expectedSeries = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "machine_iac_memory_expected_bytes", Help: "Memory that the manager uses and its running runs are expected to use, or zero without a limit.",
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

// Fits reports whether there is memory for another run with a footprint.
func (b *Budget) Fits(footprint string) bool {
	if b.options.Limit == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	needed, inUse := b.expectedOf(footprint), b.inUse()
	fits := inUse+needed <= b.options.Limit
	if !fits && !b.held {
		b.options.Logger.Info("Runs wait for memory", "limit", b.options.Limit, "inUse", inUse, "needed", needed,
			"running", len(b.running))
	}
	b.held = !fits
	return fits
}

// Started records that a run, which works in the folder of that name, has begun.
func (b *Budget) Started(run, footprint string) {
	if b.options.Limit == 0 {
		return
	}
	b.mu.Lock()
	b.running[run] = &taken{footprint: footprint}
	b.mu.Unlock()
	select {
	case b.begun <- struct{}{}:
	default: // already awake
	}
}

// Ended records that a run has ended, and learns from it.
func (b *Budget) Ended(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.running[run]
	delete(b.running, run)
	if was == nil || was.most == 0 {
		return // too short to be sampled
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

// expectedOf returns the expected usage of a run. The caller holds the lock.
func (b *Budget) expectedOf(footprint string) int64 {
	most, known := b.expected[footprint]
	if !known {
		return Unknown
	}
	return most + most/headroom
}

// inUse returns the current usage plus what active runs are still expected to use. The caller holds
// the lock.
func (b *Budget) inUse() int64 {
	sum := b.shared
	for _, one := range b.running {
		sum += max(b.expectedOf(one.footprint), one.most)
	}
	return sum
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only a leader has runs.
func (b *Budget) NeedLeaderElection() bool { return true }

// Start samples while there are runs, until ctx ends.
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

// sample samples once, and reports whether there are runs.
func (b *Budget) sample() bool {
	usage, err := b.options.Usage(b.options.Dir)
	if err != nil {
		b.options.Logger.Error(err, "Cannot read memory usage; keeping the last known values")
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

// runOf returns the run that a folder belongs to. A lookup's folder has a suffix after the UUID of
// the run.
func runOf(folder string) string {
	const uuid = 36
	return folder[:min(uuid, len(folder))]
}
