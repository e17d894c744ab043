package desired

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sharedTimeout bounds a read with several waiters, none of which may cancel it for the others.
const sharedTimeout = 30 * time.Second

// sharedReads deduplicates concurrent reads of a Secret, since many Machines share credentials. A
// read always begins after all of its requests, so its result is as fresh as that of a separate
// read.
type sharedReads struct {
	reads singleflight.Group
	// turns has a lock for each Secret, held by the read in progress.
	turns sync.Map
}

type readSecret func(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error)

// get reads a Secret. The result is shared: do not modify it.
func (s *sharedReads) get(ctx context.Context, name types.NamespacedName, read readSecret) (*corev1.Secret, error) {
	select {
	case result := <-s.join(ctx, name, read):
		secret, _ := result.Val.(*corev1.Secret)
		return secret, result.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join requests the next read of a Secret, which begins when the one in progress has ended.
func (s *sharedReads) join(ctx context.Context, name types.NamespacedName,
	read readSecret) <-chan singleflight.Result {
	key := name.String()
	return s.reads.DoChan(key, func() (any, error) {
		turn, _ := s.turns.LoadOrStore(key, &sync.Mutex{})
		lock, _ := turn.(*sync.Mutex)
		lock.Lock()
		defer lock.Unlock()
		s.reads.Forget(key) // later requests get the next read
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedTimeout)
		defer cancel()
		return read(ctx, name)
	})
}
