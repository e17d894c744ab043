package plugin

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// recordedFor is how long what a bridge has said is repeated: a provider in its place may have been replaced.
	recordedFor = time.Hour
	// maxRecorded bounds what is kept, in bytes. What does not fit is asked for each time.
	maxRecorded = 32 << 20
)

// recordings are what bridges have said that every other to the same provider says too.
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

// get returns what was said to a request, nil where it is not known.
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

// put keeps what was said to a request.
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

// forget removes a recording. The caller holds the lock.
func (r *recordings) forget(request string) {
	if found, known := r.said[request]; known {
		r.size -= len(request) + len(found.response)
		delete(r.said, request)
	}
}
