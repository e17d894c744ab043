package machinehealthcheck

import (
	"sync"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// stateEvent is an event about a state, which is sent when the state is new.
type stateEvent struct {
	// topic and content identify the state: it is new when the topic has another content than
	// before.
	topic, content string
	event          events.Event
}

// memory has the history of each MachineHealthCheck. After a restart all states are new.
type memory struct {
	mu     sync.Mutex
	checks map[types.NamespacedName]*history
}

func newMemory() *memory {
	return &memory{checks: map[types.NamespacedName]*history{}}
}

// of returns the history of a MachineHealthCheck, not that of an earlier one of the same name. A
// MachineHealthCheck has one reconcile at a time, so its history needs no lock.
func (m *memory) of(check *machinev1beta1.MachineHealthCheck) *history {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(check)
	if known, ok := m.checks[key]; ok && known.uid == check.UID {
		return known
	}
	m.checks[key] = newHistory(check.UID)
	return m.checks[key]
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.checks, key)
}

// history is what one reconcile of a MachineHealthCheck records for the next.
type history struct {
	uid types.UID
	// sent is what was last reported: content by topic.
	sent map[string]string
}

func newHistory(uid types.UID) *history {
	return &history{uid: uid, sent: map[string]string{}}
}

// sendNew sends the events of new states. A state that a complete reconcile no longer has is over,
// and will be new again.
func (r *history) sendNew(recorder events.Recorder, events []stateEvent, finished bool) {
	before := r.sent
	if finished {
		r.sent = make(map[string]string, len(events))
	}
	for _, stateEvent := range events {
		if content, ok := before[stateEvent.topic]; !ok || content != stateEvent.content {
			stateEvent.event.Send(recorder)
		}
		r.sent[stateEvent.topic] = stateEvent.content
	}
}
