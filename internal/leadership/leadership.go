package leadership

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// ErrNotLeader means that this process does not lead and must stop its engines and exit.
var ErrNotLeader = errors.New("this process is not the leader")

// Options configures a Leadership.
type Options struct {
	// Config connects to the API server. The Lease gets a client of its own, so that no other
	// request delays a renewal.
	Config *rest.Config
	// Leases is used instead of a client made from Config.
	Leases          coordinationv1client.LeasesGetter
	Namespace, Name string
	// Former is the Lease of earlier versions, if different. It is retired before this process
	// leads.
	Former types.NamespacedName
	// Identity is unique to this process.
	Identity string
	Timing   Timing
	// Renewed is called after each renewal, before the leader election sees it, and thus before
	// anything runs that needs leadership.
	Renewed func()
	// Clock defaults to the system clock.
	Clock clock.WithTicker
	// Wall returns the wall clock's time; default is Clock. See moment.
	Wall func() time.Time
	// Logger logs changes of leadership.
	Logger logr.Logger
}

// Leadership is this process's part in leader election. It is safe for concurrent use.
type Leadership struct {
	leases   coordinationv1client.LeaseInterface
	former   *former // nil if it is the same
	object   string  // the Lease's name
	name     string  // with its namespace, for errors
	lock     resourcelock.Interface
	identity string
	timing   Timing
	renewed  func()
	clock    clock.WithTicker
	wall     func() time.Time
	log      logr.Logger
	alone    bool
	started  time.Time // of a process alone

	asking chan struct{} // semaphore for reading the Lease to confirm
	lost   chan struct{}

	mu   sync.Mutex
	term *term // nil until this process leads
	// over is why this process no longer leads.
	over string
	seen observation
}

// term is the period in which this process leads.
type term struct {
	epoch state.Epoch
	// version is the latest resourceVersion of the Lease known to this process.
	version string
	// began is the start of the term by the API server's clock.
	began time.Time
	// acquired is when this process first knew that it leads. renewed is the start of its last
	// renewal. confirmed is the start of the last read that confirmed it.
	acquired           time.Time
	renewed, confirmed moment
	// waited reports that the previous holder was silent for its whole lease; released, that it
	// released the Lease after its last engine.
	waited, released bool
}

// moment is a time by two clocks. The steady clock stops while a machine sleeps or is paused. The
// wall clock is corrected when the machine resumes, but may be set to anything.
type moment struct{ steady, wall time.Time }

// now is the current moment.
func (l *Leadership) now() moment { return moment{steady: l.clock.Now(), wall: l.wall()} }

// age returns the age of a moment by the clock that advanced more: a pause must not make anything
// look recent.
func (l *Leadership) age(m moment) time.Duration {
	return max(l.clock.Since(m.steady), l.wall().Sub(m.wall))
}

// observation is the last seen state of another holder's Lease, and since when it has not changed.
type observation struct {
	epoch    state.Epoch
	renew    time.Time // compared with itself only
	since    time.Time
	lease    time.Duration
	released bool
}

// New returns a Leadership for a leader election that uses its ResourceLock.
func New(o Options) (*Leadership, error) {
	if o.Identity == "" || o.Name == "" || o.Namespace == "" {
		return nil, errors.New("leader election requires an identity and the name and namespace of a Lease")
	}
	if err := o.Timing.check(); err != nil {
		return nil, err
	}
	if o.Leases == nil {
		made, err := newClient(o.Config, o.Timing)
		if err != nil {
			return nil, err
		}
		o.Leases = made
	}
	l := &Leadership{
		leases: o.Leases.Leases(o.Namespace), object: o.Name, name: o.Namespace + "/" + o.Name, identity: o.Identity,
		timing: o.Timing, renewed: o.Renewed, clock: o.Clock, wall: o.Wall, log: o.Logger,
		asking: make(chan struct{}, 1), lost: make(chan struct{}),
	}
	if o.Former.Name != "" {
		l.former = &former{leases: o.Leases.Leases(o.Former.Namespace), name: o.Former}
	}
	if l.clock == nil {
		l.clock = clock.RealClock{}
	}
	if l.wall == nil {
		l.wall = func() time.Time { return l.clock.Now().Round(0) } // Round drops the reading of the monotonic clock
	}
	l.lock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client:     getter{l},
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
	}
	return l, nil
}

// newClient returns a client whose requests time out before the next renewal is due.
func newClient(config *rest.Config, t Timing) (coordinationv1client.LeasesGetter, error) {
	if config == nil {
		return nil, errors.New("leader election requires a client")
	}
	own := rest.AddUserAgent(config, "leader-election")
	own.QPS, own.Timeout = -1, max(t.Retry, time.Second)
	made, err := coordinationv1client.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the leader's Lease: %w", err)
	}
	return made, nil
}

// Alone returns a Leadership for a process without leader election, which always leads.
func Alone(identity string) *Leadership {
	return &Leadership{alone: true, identity: identity, lost: make(chan struct{}), started: clock.RealClock{}.Now()}
}

// ResourceLock is for manager.Options.LeaderElectionResourceLockInterface; nil for a process alone.
// Only Release releases the Lease: do not set LeaderElectionReleaseOnCancel.
func (l *Leadership) ResourceLock() resourcelock.Interface { return l.lock }

// Epoch is the current or last epoch in which this process led. It names no Lease before that, nor
// without leader election.
func (l *Leadership) Epoch() state.Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil {
		return state.Epoch{Holder: l.identity}
	}
	return l.term.epoch
}

// Began returns the start of the current term by the API server's clock, rounded up to a full
// second. An object with an earlier creationTimestamp may predate the term: what an earlier leader
// did about it, perhaps before a restore of etcd, is unknown. Began returns zero before this
// process leads. A process alone returns its own start time.
func (l *Leadership) Began() time.Time {
	if l.alone {
		return roundUp(l.started)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil {
		return time.Time{}
	}
	return l.term.began
}

// roundUp returns the next full second, so that objects of the same second count as earlier.
func roundUp(at time.Time) time.Time { return at.Truncate(time.Second).Add(time.Second) }

// Lost is closed once another process leads or may lead: the Lease names another holder, was
// deleted, was replaced, or went back in time. This process must stop its engines and exit.
func (l *Leadership) Lost() <-chan struct{} { return l.lost }

// Active reports whether this process leads and has renewed the Lease within the renew deadline.
// Engines may only live while it does.
func (l *Leadership) Active() bool {
	if l.alone {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active()
}

func (l *Leadership) active() bool {
	return l.term != nil && l.over == "" && l.age(l.term.renewed) < l.timing.Renew
}

// lose records that this process no longer leads. The caller holds the lock.
func (l *Leadership) lose(why string) {
	if l.over != "" {
		return
	}
	l.over = why
	l.log.Info("This process has lost leadership", "lease", l.name, "why", why)
	close(l.lost)
}

// epochOf returns the epoch in a Lease.
func epochOf(lease *coordinationv1.Lease) state.Epoch {
	return state.Epoch{
		Lease:       string(lease.UID),
		Transitions: int64(ptr.Deref(lease.Spec.LeaseTransitions, 0)),
		Holder:      ptr.Deref(lease.Spec.HolderIdentity, ""),
	}
}
