package pipeline

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// pacedFrom is the number of objects read by a reconcile from which a pause follows.
	pacedFrom = 200
	// pausePerObject is the pause per object read.
	pausePerObject = 100 * time.Microsecond
)

// Pace spaces the reconciles of an object that read many others. Each change of those triggers a
// reconcile, so without a pause the work would grow quadratically.
type Pace struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	next map[types.NamespacedName]time.Time
}

// NewPace returns a Pace.
func NewPace(passive clock.PassiveClock) *Pace {
	return &Pace{clock: passive, next: map[types.NamespacedName]time.Time{}}
}

// Wait returns how long an object must not be reconciled yet; zero if it may be.
func (p *Pace) Wait(object types.NamespacedName) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.next[object].Sub(p.clock.Now()))
}

// Reconciled starts the pause after a successful reconcile that read the given number of objects. A
// failed reconcile has no pause: the queue retries it, and a pause would reset its backoff.
func (p *Pace) Reconciled(object types.NamespacedName, read int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if read < pacedFrom {
		delete(p.next, object)
		return
	}
	p.next[object] = p.clock.Now().Add(time.Duration(read) * pausePerObject)
}

// Forget drops a deleted object.
func (p *Pace) Forget(object types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, object)
}
