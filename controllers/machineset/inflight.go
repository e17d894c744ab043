package machineset

import (
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// inFlight tracks, for each MachineSet, the Machines that were created or deleted and that the cache does not show so yet. A
// MachineSet is keyed by name and checked by UID, so that another one of the same name starts with nothing in flight.
type inFlight struct {
	clock   clock.PassiveClock
	timeout time.Duration

	mu   sync.Mutex
	sets map[types.NamespacedName]*outstanding
}

// outstanding is what one MachineSet waits for.
type outstanding struct {
	uid types.UID
	// checked is true once the API server was read for the MachineSet. At first it is false: an earlier process may have created Machines
	// that the cache lacks.
	checked   bool
	creations map[string]time.Time // name to deadline
	deletions map[types.UID]time.Time
}

// cacheState is whether the cache shows what was done before.
type cacheState struct {
	// settled: the cache shows everything.
	settled bool
	// check: it is not known from the cache; read the API server.
	check bool
	// wait is how long to wait for the cache; set when neither of the others is.
	wait time.Duration
}

func newInFlight(clock clock.PassiveClock, timeout time.Duration) *inFlight {
	return &inFlight{clock: clock, timeout: timeout, sets: map[types.NamespacedName]*outstanding{}}
}

// creating records that a Machine is about to be created.
func (f *inFlight) creating(set *machinev1beta1.MachineSet, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(set).creations[name] = f.clock.Now().Add(f.timeout)
}

// notCreated undoes creating: the API server has refused.
func (f *inFlight) notCreated(set *machinev1beta1.MachineSet, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of(set).creations, name)
}

// deleting records that a Machine is about to be deleted.
func (f *inFlight) deleting(set *machinev1beta1.MachineSet, machine types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(set).deletions[machine] = f.clock.Now().Add(f.timeout)
}

// notDeleted undoes deleting: the API server has refused.
func (f *inFlight) notDeleted(set *machinev1beta1.MachineSet, machine types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of(set).deletions, machine)
}

// forget drops the entry of a MachineSet that is deleted or being deleted.
func (f *inFlight) forget(set types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sets, set)
}

// observe compares what is outstanding with the cache: all Machines of the namespace, and the replicas among them.
func (f *inFlight) observe(set *machinev1beta1.MachineSet, machines, replicas []*machinev1beta1.Machine) cacheState {
	f.mu.Lock()
	defer f.mu.Unlock()
	entry := f.of(set)
	for _, machine := range machines {
		delete(entry.creations, machine.Name)
	}
	stillThere := make(map[types.UID]bool, len(replicas))
	for _, replica := range replicas {
		stillThere[replica.UID] = true
	}
	for uid := range entry.deletions {
		if !stillThere[uid] {
			delete(entry.deletions, uid)
		}
	}
	return entry.state(f.clock.Now())
}

// learn replaces what is outstanding by what the API server shows: Machines that the cache lacks, and replicas in the cache that no
// longer are replicas.
func (f *inFlight) learn(set *machinev1beta1.MachineSet, created []string, deleted []types.UID) cacheState {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	entry := &outstanding{uid: set.UID, checked: true, creations: map[string]time.Time{}, deletions: map[types.UID]time.Time{}}
	for _, name := range created {
		entry.creations[name] = now.Add(f.timeout)
	}
	for _, uid := range deleted {
		entry.deletions[uid] = now.Add(f.timeout)
	}
	f.sets[keyOf(set)] = entry
	return entry.state(now)
}

// of returns the entry of a MachineSet; the caller holds the lock.
func (f *inFlight) of(set *machinev1beta1.MachineSet) *outstanding {
	entry, ok := f.sets[keyOf(set)]
	if !ok || entry.uid != set.UID {
		entry = &outstanding{uid: set.UID, creations: map[string]time.Time{}, deletions: map[types.UID]time.Time{}}
		f.sets[keyOf(set)] = entry
	}
	return entry
}

func (o *outstanding) state(now time.Time) cacheState {
	if !o.checked {
		return cacheState{check: true}
	}
	var first time.Time
	for _, deadline := range o.creations {
		first = earlier(first, deadline)
	}
	for _, deadline := range o.deletions {
		first = earlier(first, deadline)
	}
	switch {
	case first.IsZero():
		return cacheState{settled: true}
	case !now.Before(first):
		return cacheState{check: true}
	default:
		return cacheState{wait: first.Sub(now)}
	}
}

// earlier returns the earlier of two times, where zero means none.
func earlier(x, y time.Time) time.Time {
	if x.IsZero() || y.Before(x) {
		return y
	}
	return x
}

func keyOf(set *machinev1beta1.MachineSet) types.NamespacedName {
	return types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
}
