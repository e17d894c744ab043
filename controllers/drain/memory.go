package drain

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what this process knows of drains that have not ended. A process that starts without it does no harm: it tries at once
// and may repeat an event.
type memory struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*record
}

// record is the memory of one drain. Only one reconcile at a time works on a Machine, so it needs no lock.
type record struct {
	uid types.UID
	// replaced is the resourceVersion that the last write has replaced.
	replaced string
	// since is when the drain began to proceed, as far as this process knows.
	since time.Time
	// proceeds is set once it was told that the drain proceeds.
	proceeds bool
	// faultyTimeout is the value of the deadline's annotation that was complained of; nil for none.
	faultyTimeout *string
	retry         retry
}

func newMemory() *memory { return &memory{records: map[types.NamespacedName]*record{}} }

func (m *memory) find(key types.NamespacedName) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[key]
}

func (m *memory) begin(key types.NamespacedName, uid types.UID) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[key] = &record{uid: uid}
	return m.records[key]
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
}

// pauses are how long a Machine waits between passes that leave pods: the base, doubled with each pass up to the limit.
type pauses struct {
	base, limit time.Duration
}

func (p pauses) after(failures int) time.Duration {
	pause := p.base
	for ; failures > 1 && pause < p.limit; failures-- {
		pause *= 2
	}
	return min(pause, p.limit)
}

// retry tells when the next pass is due.
type retry struct {
	// failures counts passes that left no fewer pods than the one before.
	failures int
	// left is how many pods the last pass left.
	left int
	// notBefore is when the next pass may begin.
	notBefore time.Time
}

// next answers the retry that follows a pass.
func (r retry) next(o outcome, now time.Time, pauses pauses) retry {
	if o.verdict != obstructed {
		return retry{failures: r.failures, left: r.left, notBefore: now.Add(askAgainAfter)}
	}
	failures := r.failures + 1
	if o.left < r.left { // pods go one by one where a budget lets them; it is worth to stay close
		failures = 1
	}
	return retry{failures: failures, left: o.left, notBefore: now.Add(pauses.after(failures))}
}
