package actuators

import "context"

// handoverKey is where a context has what one verb leaves to the next.
type handoverKey struct{}

// handover is what a verb has read, by what it was read about.
type handover map[any]any

// WithHandover returns a context for Exists and the verb that directly follows it in one reconcile: what an actuator has read for the one it need not read
// again for the other. It is for one goroutine.
func WithHandover(ctx context.Context) context.Context {
	return context.WithValue(ctx, handoverKey{}, handover{})
}

// HandOver leaves what was read about something to the next verb, where there is one.
func HandOver(ctx context.Context, about, read any) {
	if left, ok := ctx.Value(handoverKey{}).(handover); ok {
		left[about] = read
	}
}

// Handed returns what the verb before has left, once.
func Handed[T any](ctx context.Context, about any) (read T, ok bool) {
	left, _ := ctx.Value(handoverKey{}).(handover)
	read, ok = left[about].(T)
	delete(left, about)
	return read, ok
}
