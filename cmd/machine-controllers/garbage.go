package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// largeHeap is from how many bytes in use on garbage is collected earlier: with thousands of Machines nearly all of it is what the manager watches, and stays.
	largeHeap = 64 << 20
	// usualGarbage, littleGarbage and leastGarbage are how much may come together before it is collected, in percent of what is in use: the last while all is
	// read, which takes the most memory.
	usualGarbage, littleGarbage, leastGarbage = 100, 50, 35
	// heapInterval is how often it is looked how much that is.
	heapInterval = time.Second
	// readingTime is how long a manager that starts reads all that it watches.
	readingTime = 30 * time.Second
)

// garbage has less of it come together where much is in use. It is a manager.Runnable, and does nothing where GOGC is set.
type garbage struct {
	// reading is how long after the start the least of it comes together: what all is read from is garbage then.
	reading time.Duration
}

// newGarbage has the least of it come together from now on: the caches are filled before Start.
func newGarbage(reading time.Duration) garbage {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(leastGarbage)
	}
	return garbage{reading: reading}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (garbage) NeedLeaderElection() bool { return false }

// Start looks at what is in use until ctx ends.
func (g garbage) Start(ctx context.Context) error {
	if _, set := os.LookupEnv("GOGC"); set {
		return nil
	}
	ticker := time.NewTicker(heapInterval)
	defer ticker.Stop()
	began := time.Now()
	for allowed := 0; ; {
		if wanted := garbageFor(time.Since(began) < g.reading, heapInUse()); wanted != allowed {
			allowed = wanted
			debug.SetGCPercent(allowed)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func garbageFor(reading bool, inUse uint64) int {
	switch {
	case reading:
		return leastGarbage
	case inUse >= largeHeap:
		return littleGarbage
	default:
		return usualGarbage
	}
}

// heapInUse returns how many bytes the last collection has left.
func heapInUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
