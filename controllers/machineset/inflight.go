package machineset

import (
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// inFlight remembers, for each MachineSet, the Machines that were created or deleted and that the cache does not show so yet.
// A MachineSet is keyed by name and checked by UID, so that one made again under the same name starts with a clean slate.
type inFlight struct {
	clock   clock.PassiveClock
	timeout time.Duration

	mu   sync.Mutex
	sets map[types.NamespacedName]*outstanding
}

// outstanding is what one MachineSet waits for.
type outstanding struct {
	uid types.UID
	// checked is true once the API server has confirmed what is outstanding. It is false when this process has not met the
	// MachineSet before: an earlier one may have created Machines that the cache lacks.
	checked   bool
	creations map[string]time.Time // name to deadline
	deletions map[types.UID]time.Time
}

// verdict is what inFlight makes of the cache.
type verdict struct {
	// settled: the cache shows everything that was done.
	settled bool
	// check: the cache alone cannot tell; ask the API server.
	check bool
	// wait is how long the cache may still take; set when neither of the others is.
	wait time.Duration
}

func newInFlight(clock clock.PassiveClock, timeout time.Duration) *inFlight {
	return &inFlight{clock: clock, timeout: timeout, sets: map[types.NamespacedName]*outstanding{}}
}

// creating notes that a Machine is about to be created.
func (f *inFlight) creating(set *machinev1beta1.MachineSet, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(set).creations[name] = f.clock.Now().Add(f.timeout)
}

// notCreated takes creating back: the API server has refused.
func (f *inFlight) notCreated(set *machinev1beta1.MachineSet, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of(set).creations, name)
}

// deleting notes that a Machine is about to be deleted.
func (f *inFlight) deleting(set *machinev1beta1.MachineSet, machine types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(set).deletions[machine] = f.clock.Now().Add(f.timeout)
}

// notDeleted takes deleting back: the API server has refused.
func (f *inFlight) notDeleted(set *machinev1beta1.MachineSet, machine types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of(set).deletions, machine)
}

// forget drops all about a MachineSet that is gone or going.
func (f *inFlight) forget(set types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sets, set)
}

// observe compares what is outstanding with the cache: all Machines of the namespace, and the replicas among them.
func (f *inFlight) observe(set *machinev1beta1.MachineSet, machines, replicas []*machinev1beta1.Machine) verdict {
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
	return entry.verdict(f.clock.Now())
}

// learn replaces what is outstanding by what the API server says: Machines that it has and the cache lacks, and replicas in the
// cache that it no longer has as such.
func (f *inFlight) learn(set *machinev1beta1.MachineSet, created []string, deleted []types.UID) verdict {
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
	return entry.verdict(now)
}

// of answers the entry of a MachineSet; the caller holds the lock.
func (f *inFlight) of(set *machinev1beta1.MachineSet) *outstanding {
	entry, ok := f.sets[keyOf(set)]
	if !ok || entry.uid != set.UID {
		entry = &outstanding{uid: set.UID, creations: map[string]time.Time{}, deletions: map[types.UID]time.Time{}}
		f.sets[keyOf(set)] = entry
	}
	return entry
}

func (o *outstanding) verdict(now time.Time) verdict {
	if !o.checked {
		return verdict{check: true}
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
		return verdict{settled: true}
	case !now.Before(first):
		return verdict{check: true}
	default:
		return verdict{wait: first.Sub(now)}
	}
}

// earlier answers the earlier of two times, where zero means none.
func earlier(x, y time.Time) time.Time {
	if x.IsZero() || y.Before(x) {
		return y
	}
	return x
}

func keyOf(set *machinev1beta1.MachineSet) types.NamespacedName {
	return types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
}
