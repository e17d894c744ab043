package bridge

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// recordedFor is how long a bridge's response is cached: the provider's files may have been
	// replaced.
	recordedFor = time.Hour
	// maxRecorded limits the size of the cache in bytes. Responses that do not fit are requested each
	// time.
	maxRecorded = 32 << 20
)

// recordings cache responses that are the same for every bridge to a provider.
type recordings struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	size int
	said map[string]recording
}

type recording struct {
	response []byte
	at       time.Time
}

// get returns the cached response to a request, or nil.
func (r *recordings) get(request string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, known := r.said[request]
	if known && r.clock.Since(found.at) >= recordedFor {
		r.forget(request)
		return nil
	}
	return found.response
}

// put caches the response to a request.
func (r *recordings) put(request string, response []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(request)
	takes := len(request) + len(response)
	if r.size+takes > maxRecorded {
		return
	}
	r.size += takes
	r.said[request] = recording{response: response, at: r.clock.Now()}
}

// forget removes a response. The caller holds the lock.
func (r *recordings) forget(request string) {
	if found, known := r.said[request]; known {
		r.size -= len(request) + len(found.response)
		delete(r.said, request)
	}
}
