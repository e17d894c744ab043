package drain

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is this process's knowledge of unfinished drains. After a restart drains are retried at
// once, and events may repeat.
type memory struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*drainProgress
}

// drainProgress is what is remembered of one drain. A Machine has one reconcile at a time, so it
// needs no lock.
type drainProgress struct {
	uid types.UID
	// replaced is the resourceVersion that the last write replaced.
	replaced string
	// since is when this process first saw that the drain may proceed.
	since time.Time
	// announced is set once the event DrainProceeds was sent.
	announced bool
	// reportedTimeout is the invalid value of the timeout annotation that an event was sent about;
	// nil for none.
	reportedTimeout *string
	retry           retry
	// newest is when the newest pod was created that the first attempt found on the listed target.
	newest time.Time
	listed target
}

// newest returns when the newest pod was created that the first attempt found on the Node, or zero
// before that attempt.
func (s *scope) newest() time.Time {
	if s.progress.listed != targetOf(s.machine) {
		return time.Time{}
	}
	return s.progress.newest
}

func newMemory() *memory { return &memory{records: map[types.NamespacedName]*drainProgress{}} }

func (m *memory) find(key types.NamespacedName) *drainProgress {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[key]
}

func (m *memory) begin(key types.NamespacedName, uid types.UID) *drainProgress {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[key] = &drainProgress{uid: uid}
	return m.records[key]
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
}

// backoff is how long a Machine waits between attempts that leave pods: base, doubled with each
// attempt up to limit.
type backoff struct {
	base, limit time.Duration
}

func (p backoff) after(failures int) time.Duration {
	pause := p.base
	for ; failures > 1 && pause < p.limit; failures-- {
		pause *= 2
	}
	return min(pause, p.limit)
}

// retry is when the next attempt is due.
type retry struct {
	// failures counts attempts that left no fewer pods than the one before.
	failures int
	// left is how many pods the last attempt left.
	left int
	// notBefore is when the next attempt may begin.
	notBefore time.Time
}

// next returns the retry after an attempt.
func (r retry) next(o outcome, now time.Time, backoff backoff) retry {
	if o.kind != podsRemain {
		return retry{failures: r.failures, left: r.left, notBefore: now.Add(waitInterval)}
	}
	failures := r.failures + 1
	if o.left < r.left { // there is progress: a budget may allow one pod at a time
		failures = 1
	}
	return retry{failures: failures, left: o.left, notBefore: now.Add(backoff.after(failures))}
}
