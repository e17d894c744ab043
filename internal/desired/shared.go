package desired

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sharedTimeout bounds a read with several waiters, none of which may cancel it for the others.
const sharedTimeout = 30 * time.Second

// sharedReads deduplicates concurrent reads of a Secret, since many Machines share credentials. A
// read always begins after all of its requests, so its result is as fresh as that of a separate
// read.
type sharedReads struct {
	mu      sync.Mutex
	secrets map[types.NamespacedName]*secretReads
}

// secretReads are the reads of one Secret: one is in progress, and the next begins when it ends.
type secretReads struct{ next *sharedRead }

type sharedRead struct {
	done   chan struct{}
	secret *corev1.Secret
	err    error
}

type readSecret func(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error)

// get reads a Secret. The result is shared: do not modify it.
func (s *sharedReads) get(ctx context.Context, name types.NamespacedName, read readSecret) (*corev1.Secret, error) {
	mine := s.join(ctx, name, read)
	select {
	case <-mine.done:
		return mine.secret, mine.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join returns the next read of a Secret, and starts it if none is in progress.
func (s *sharedReads) join(ctx context.Context, name types.NamespacedName, read readSecret) *sharedRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads, underWay := s.secrets[name]
	if !underWay {
		if s.secrets == nil {
			s.secrets = map[types.NamespacedName]*secretReads{}
		}
		reads = &secretReads{}
		s.secrets[name] = reads
	}
	if reads.next == nil {
		reads.next = &sharedRead{done: make(chan struct{})}
	}
	mine := reads.next
	if !underWay {
		go s.run(context.WithoutCancel(ctx), name, reads, read)
	}
	return mine
}

// run reads a Secret until no request is waiting.
func (s *sharedReads) run(ctx context.Context, name types.NamespacedName, reads *secretReads, read readSecret) {
	for now := s.begin(name, reads); now != nil; now = s.begin(name, reads) {
		ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
		now.secret, now.err = read(ctx, name)
		cancel()
		close(now.done)
	}
}

// begin returns the read that begins now and accepts no more requests, or nil if none is waiting.
func (s *sharedReads) begin(name types.NamespacedName, reads *secretReads) *sharedRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := reads.next
	reads.next = nil
	if now == nil {
		delete(s.secrets, name)
	}
	return now
}
