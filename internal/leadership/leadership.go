package leadership

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// ErrNotLeader says that this process does not lead: it must end its engines and itself.
var ErrNotLeader = errors.New("this process is not the leader")

// Options are what a Leadership needs.
type Options struct {
	// Config connects to the API server. The Lease gets a client of its own, so that no other request delays a renewal.
	Config *rest.Config
	// Leases is used instead of a client made from Config.
	Leases coordinationv1client.LeasesGetter
	// Namespace and Name are the Lease's.
	Namespace, Name string
	// Identity is this process's, and no other's.
	Identity string
	// Timing is made by NewTiming.
	Timing Timing
	// Renewed is called after each renewal, before the leader election hears of it; thus before anything runs that needs a leader.
	Renewed func()
	// Clock is the real one where it is nil.
	Clock clock.WithTicker
	// Logger logs changes of leadership.
	Logger logr.Logger
}

// Leadership is this process's part in a leader election. It is safe for concurrent use.
type Leadership struct {
	leases   coordinationv1client.LeaseInterface
	object   string // the Lease's name
	name     string // with its namespace, for errors
	lock     resourcelock.Interface
	identity string
	timing   Timing
	renewed  func()
	clock    clock.WithTicker
	log      logr.Logger
	alone    bool

	asking chan struct{} // holds one: whoever reads the Lease to confirm
	lost   chan struct{}

	mu   sync.Mutex
	term *term // nil until this process leads
	// over is why this process does not lead any more.
	over string
	seen observation
}

// term is the time in which this process leads.
type term struct {
	epoch state.Epoch
	// acquired is when this process was first known to lead, renewed is the beginning of its last renewal, confirmed that of the last
	// read that found it in the Lease.
	acquired, renewed, confirmed time.Time
	// waited says that the holder before was silent for its whole lease, released that it gave the Lease back after its last engine.
	waited, released bool
}

// observation is what this process last saw of another's Lease, and since when that has not changed.
type observation struct {
	epoch    state.Epoch
	renew    time.Time // compared with itself only
	since    time.Time
	lease    time.Duration
	released bool
}

// New makes a Leadership for a leader election that uses its ResourceLock.
func New(o Options) (*Leadership, error) {
	if o.Identity == "" || o.Name == "" || o.Namespace == "" {
		return nil, errors.New("a leader election needs an identity, and the name and namespace of a Lease")
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
		timing: o.Timing, renewed: o.Renewed, clock: o.Clock, log: o.Logger,
		asking: make(chan struct{}, 1), lost: make(chan struct{}),
	}
	if l.clock == nil {
		l.clock = clock.RealClock{}
	}
	l.lock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client:     getter{l},
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
	}
	return l, nil
}

// newClient makes a client whose requests fail before the next renewal is due.
func newClient(config *rest.Config, t Timing) (coordinationv1client.LeasesGetter, error) {
	if config == nil {
		return nil, errors.New("a leader election needs a client")
	}
	own := rest.AddUserAgent(config, "leader-election")
	own.QPS, own.Timeout = -1, max(t.Retry, time.Second)
	made, err := coordinationv1client.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("making a client for the leader's Lease: %w", err)
	}
	return made, nil
}

// Alone makes a Leadership for a process that runs without leader election: it always leads, and others never do.
func Alone(identity string) *Leadership {
	return &Leadership{alone: true, identity: identity, lost: make(chan struct{})}
}

// ResourceLock is for manager.Options.LeaderElectionResourceLockInterface; nil for a process alone. The Lease is given back by Release
// alone: leave LeaderElectionReleaseOnCancel out.
func (l *Leadership) ResourceLock() resourcelock.Interface { return l.lock }

// Epoch is that in which this process leads, or led last. It has no Lease before, nor without leader election.
func (l *Leadership) Epoch() state.Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil {
		return state.Epoch{Holder: l.identity}
	}
	return l.term.epoch
}

// Lost is closed once another leads, or may: the Lease names another holder, was deleted, or is another one. This process must end its
// engines and itself.
func (l *Leadership) Lost() <-chan struct{} { return l.lost }

// Active reports whether this process leads and has renewed the Lease within the renew deadline. Engines live only while it does.
func (l *Leadership) Active() bool {
	if l.alone {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active()
}

// active is Active with the lock held.
func (l *Leadership) active() bool {
	return l.term != nil && l.over == "" && l.clock.Since(l.term.renewed) < l.timing.Renew
}

// lose notes that this process does not lead any more. The caller holds the lock.
func (l *Leadership) lose(why string) {
	if l.over != "" {
		return
	}
	l.over = why
	l.log.Info("This process does not lead any more", "lease", l.name, "why", why)
	close(l.lost)
}

// epochOf reads a Lease.
func epochOf(lease *coordinationv1.Lease) state.Epoch {
	return state.Epoch{
		Lease:       string(lease.UID),
		Transitions: int64(ptr.Deref(lease.Spec.LeaseTransitions, 0)),
		Holder:      ptr.Deref(lease.Spec.HolderIdentity, ""),
	}
}
