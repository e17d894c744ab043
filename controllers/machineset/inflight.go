package machineset

import (
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// inFlight tracks, for each MachineSet, the created and deleted Machines that the cache does not
// show yet. A MachineSet is keyed by name and checked by UID, so that a recreated one starts with
// nothing in flight.
type inFlight struct {
	clock   clock.PassiveClock
	timeout time.Duration

	mu   sync.Mutex
	sets map[types.NamespacedName]*outstanding
}

// outstanding is what one MachineSet waits for.
type outstanding struct {
	uid       types.UID
	creations map[string]time.Time // name to deadline
	deletions map[types.UID]time.Time
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

// forget drops the entry of a MachineSet: it is deleted or being deleted, or the API server has
// been read.
func (f *inFlight) forget(set types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sets, set)
}

// observe compares what is outstanding with the cache: all Machines of the namespace, and the
// replicas among them. It returns how long to wait for the cache; zero when it shows everything, or
// should have by now.
func (f *inFlight) observe(set *machinev1beta1.MachineSet, machines, replicas []*machinev1beta1.Machine) time.Duration {
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
	return entry.wait(f.clock.Now())
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

func (o *outstanding) wait(now time.Time) time.Duration {
	var first time.Time
	for _, deadline := range o.creations {
		first = earlier(first, deadline)
	}
	for _, deadline := range o.deletions {
		first = earlier(first, deadline)
	}
	if first.IsZero() {
		return 0
	}
	return max(0, first.Sub(now))
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
