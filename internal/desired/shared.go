package desired

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sharedTimeout bounds a read that several wait for, as none of them may end it for the others.
const sharedTimeout = 30 * time.Second

// sharedReads lets those that read a Secret at the same time read it together. Many Machines have the same credentials. A read has always begun after
// each of those that it serves has asked for it, so that what it returns is as new as what a read of their own would.
type sharedReads struct {
	mu      sync.Mutex
	secrets map[types.NamespacedName]*secretReads
}

// secretReads are the reads of one Secret: one is under way, the next begins when it has ended.
type secretReads struct{ next *sharedRead }

type sharedRead struct {
	done   chan struct{}
	secret *corev1.Secret
	err    error
}

type readSecret func(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error)

// get reads a Secret. It is shared: read it, never change it.
func (s *sharedReads) get(ctx context.Context, name types.NamespacedName, read readSecret) (*corev1.Secret, error) {
	mine := s.join(ctx, name, read)
	select {
	case <-mine.done:
		return mine.secret, mine.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join returns the next read of a Secret, and has it begin where none is under way.
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

// run reads a Secret until nobody waits for it.
func (s *sharedReads) run(ctx context.Context, name types.NamespacedName, reads *secretReads, read readSecret) {
	for now := s.begin(name, reads); now != nil; now = s.begin(name, reads) {
		ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
		now.secret, now.err = read(ctx, name)
		cancel()
		close(now.done)
	}
}

// begin returns the read that begins now, which nobody can join any more; nil where nobody waits.
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
