package render

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxDecoded limits the number of cached providerSpecs; beyond it, the cache is cleared.
	// maxDecodedSize is the maximum length of one of them.
	maxDecoded     = 200
	maxDecodedSize = 16 << 10
)

// decodedSpecs caches decoded providerSpecs by their JSON: all Machines of a MachineSet have the
// same, and each is decoded several times in a reconcile. It is safe for concurrent use.
type decodedSpecs struct {
	mu  sync.Mutex
	all map[string]map[string]any
}

// get returns a copy of a cached value, or nil.
func (d *decodedSpecs) get(raw []byte) map[string]any {
	d.mu.Lock()
	fields := d.all[string(raw)]
	d.mu.Unlock()
	return runtime.DeepCopyJSON(fields)
}

// add caches a decoded value and returns a copy that the caller may modify.
func (d *decodedSpecs) add(raw []byte, fields map[string]any) map[string]any {
	if len(raw) > maxDecodedSize {
		return fields
	}
	own := runtime.DeepCopyJSON(fields)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil || len(d.all) >= maxDecoded {
		d.all = map[string]map[string]any{}
	}
	d.all[string(raw)] = own
	return fields
}
