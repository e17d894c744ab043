package machine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// cacheRetry is how soon a Machine is read again that the cache does not yet have as it was last written.
	cacheRetry = 100 * time.Millisecond
	// cachePatience is how long the cache is waited for. A restore of etcd takes resource versions back, so there must be an end.
	cachePatience = 30 * time.Second
)

// writes are the Machines that the cache may not yet have as this controller wrote them. A reconcile of such a Machine would compare with what
// was there before, find nothing to write and leave a condition that is wrong: updates of the controller's own conditions trigger none.
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

// ahead reports whether what was written is newer than the version that was read. An empty version is that of a Machine that is gone.
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
