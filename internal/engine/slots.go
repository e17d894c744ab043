package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

var errClosed = errors.New("the engine is closed")

// Slots bounds the concurrent runs of an engine.
type Slots[T any] struct {
	free   chan T
	closed chan struct{}

	closing sync.Once
	mu      sync.Mutex // held while Close waits; guards ended
	ended   bool
}

// NewSlots returns no free slots yet: Put adds them, as many as count.
func NewSlots[T any](count int) *Slots[T] {
	return &Slots[T]{free: make(chan T, count), closed: make(chan struct{})}
}

// Put adds a slot or returns one.
func (s *Slots[T]) Put(slot T) { s.free <- slot }

// Take blocks until a slot is free.
func (s *Slots[T]) Take(ctx context.Context) (slot T, err error) {
	select {
	case <-s.closed:
		return slot, errClosed
	default:
	}
	if ctx.Err() == nil {
		select {
		case slot = <-s.free:
			return slot, nil
		case <-s.closed:
			return slot, errClosed
		case <-ctx.Done():
		}
	}
	return slot, fmt.Errorf("waiting for a free engine: %w", context.Cause(ctx))
}

// Close rejects new runs, waits until every run has returned its slot, and calls end once. If ctx
// ends first, Close can be called again.
func (s *Slots[T]) Close(ctx context.Context, end func() error) error {
	s.closing.Do(func() { close(s.closed) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	var idle []T
	for range cap(s.free) {
		select {
		case slot := <-s.free:
			idle = append(idle, slot)
		case <-ctx.Done():
			for _, slot := range idle {
				s.free <- slot
			}
			return fmt.Errorf("closing the engine: %d of its runs are still open: %w", cap(s.free)-len(idle),
				context.Cause(ctx))
		}
	}
	s.ended = true
	return end()
}
