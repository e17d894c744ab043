package machinehealthcheck

import (
	"sync"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// saying is something that is the case and worth an event.
type saying struct {
	// topic is what it is about; content is what is said. Together they tell whether it is news.
	topic, content string
	notice         events.Event
}

// memory keeps a recollection for each MachineHealthCheck. It is lost with the process: then everything is news again, and the cache
// is fresh.
type memory struct {
	mu     sync.Mutex
	checks map[types.NamespacedName]*recollection
}

func newMemory() *memory {
	return &memory{checks: map[types.NamespacedName]*recollection{}}
}

// of answers the recollection of this very MachineHealthCheck, not of one that had its name before. A MachineHealthCheck has one
// pass at a time, and so its recollection needs no lock.
func (m *memory) of(check *machinev1beta1.MachineHealthCheck) *recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(check)
	if known, ok := m.checks[key]; ok && known.uid == check.UID {
		return known
	}
	m.checks[key] = newRecollection(check.UID)
	return m.checks[key]
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.checks, key)
}

// recollection is what one pass over a MachineHealthCheck leaves for the next.
type recollection struct {
	uid types.UID
	// told is what was said last, content by topic.
	told map[string]string
	// deleted are Machines that were deleted and may not show it yet.
	deleted map[types.UID]bool
	// annotated are Machines that got the annotation for external remediation, with the resourceVersion that they had before.
	annotated map[types.UID]string
}

func newRecollection(uid types.UID) *recollection {
	return &recollection{uid: uid, told: map[string]string{}, deleted: map[types.UID]bool{}, annotated: map[types.UID]string{}}
}

// complete makes a target of what the cache shows and of what it may not show yet.
func (r *recollection) complete(machine *machinev1beta1.Machine, node *corev1.Node) *target {
	_, annotated := machine.Annotations[externalAnnotation]
	before, ours := r.annotated[machine.UID]
	return &target{
		machine:   machine,
		node:      node,
		deleting:  !machine.DeletionTimestamp.IsZero() || r.deleted[machine.UID],
		annotated: annotated || ours && before == machine.ResourceVersion,
	}
}

// prune drops what the cache shows by now.
func (r *recollection) prune(targets []*target) {
	deleted, annotated := map[types.UID]bool{}, map[types.UID]string{}
	for _, target := range targets {
		uid := target.machine.UID
		if r.deleted[uid] && target.machine.DeletionTimestamp.IsZero() {
			deleted[uid] = true
		}
		if before, ok := r.annotated[uid]; ok && before == target.machine.ResourceVersion {
			annotated[uid] = before
		}
	}
	r.deleted, r.annotated = deleted, annotated
}

// tell sends the sayings that are news. What a finished pass does not say any more is over, and will be news again.
func (r *recollection) tell(recorder events.Recorder, sayings []saying, finished bool) {
	before := r.told
	if finished {
		r.told = make(map[string]string, len(sayings))
	}
	for _, saying := range sayings {
		if content, ok := before[saying.topic]; !ok || content != saying.content {
			saying.notice.Send(recorder)
		}
		r.told[saying.topic] = saying.content
	}
}
