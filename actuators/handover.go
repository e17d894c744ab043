package actuators

import "context"

// handoverKey is the context key of a handover.
type handoverKey struct{}

// handover maps subjects to what a verb has read about them.
type handover map[any]any

// WithHandover returns a context for Exists and the verb that follows it in one reconcile. The
// second verb reuses what the first has read. It must be used by one goroutine only.
func WithHandover(ctx context.Context) context.Context {
	return context.WithValue(ctx, handoverKey{}, handover{})
}

// HandOver passes what was read about a subject to the next verb, if there is one.
func HandOver(ctx context.Context, about, read any) {
	if left, ok := ctx.Value(handoverKey{}).(handover); ok {
		left[about] = read
	}
}

// Handed returns what the previous verb has left about a subject, once.
func Handed[T any](ctx context.Context, about any) (read T, ok bool) {
	left, _ := ctx.Value(handoverKey{}).(handover)
	read, ok = left[about].(T)
	delete(left, about)
	return read, ok
}
