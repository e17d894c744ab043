package machine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// cacheRetry is the delay before a Machine is read again whose last write the cache does not
	// show yet.
	cacheRetry = 100 * time.Millisecond
	// cachePatience bounds the wait for the cache. A restore of etcd resets resource versions, so
	// the wait must end.
	cachePatience = 30 * time.Second
)

// writes holds the Machines whose last write the cache may not show yet. A reconcile of such a
// Machine would compare with its earlier state, find nothing to write and leave a wrong condition:
// updates of the controller's own conditions trigger no reconcile.
type writes struct {
	mutex   sync.Mutex
	pending map[types.NamespacedName]write
}

type write struct {
	version string
	at      time.Time
}

// add records the resource version that a write has returned.
func (w *writes) add(name types.NamespacedName, version string, now time.Time) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.pending == nil {
		w.pending = map[types.NamespacedName]write{}
	}
	w.pending[name] = write{version, now}
}

// ahead reports whether the last write is newer than the version that was read. An empty version
// means that the Machine is gone.
func (w *writes) ahead(name types.NamespacedName, read string, now time.Time) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	last, ok := w.pending[name]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(read, last.version)
	if err == nil && order < 0 && now.Sub(last.at) < cachePatience {
		return true
	}
	delete(w.pending, name)
	return false
}
