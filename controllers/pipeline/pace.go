package pipeline

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// pacedFrom is how many objects a reconcile has read that is followed by a pause.
	pacedFrom = 200
	// pausePerObject is that pause for each of them.
	pausePerObject = 100 * time.Microsecond
)

// Pace keeps the reconciles of an object apart that read many others. A change of any of those triggers one, so that without a pause their work would
// grow with the square of how many there are.
type Pace struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	next map[types.NamespacedName]time.Time
}

// NewPace returns a Pace.
func NewPace(passive clock.PassiveClock) *Pace {
	return &Pace{clock: passive, next: map[types.NamespacedName]time.Time{}}
}

// Wait returns how long an object is not reconciled yet; zero where it may be.
func (p *Pace) Wait(object types.NamespacedName) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.next[object].Sub(p.clock.Now()))
}

// Reconciled begins the pause of an object whose reconcile has read so many others and succeeded. One that failed has no pause: it is repeated by the queue,
// whose backoff a pause would reset.
func (p *Pace) Reconciled(object types.NamespacedName, read int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if read < pacedFrom {
		delete(p.next, object)
		return
	}
	p.next[object] = p.clock.Now().Add(time.Duration(read) * pausePerObject)
}

// Forget forgets an object that is gone.
func (p *Pace) Forget(object types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, object)
}
