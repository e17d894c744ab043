package runs

// ordered is a heap for container/heap whose items know their index.
type ordered[T any] struct {
	items  []T
	before func(a, b T) bool
	place  func(T) *int
}

// Len implements heap.Interface.
func (o *ordered[T]) Len() int { return len(o.items) }

// Less implements heap.Interface.
func (o *ordered[T]) Less(i, j int) bool { return o.before(o.items[i], o.items[j]) }

// Swap implements heap.Interface.
func (o *ordered[T]) Swap(i, j int) {
	o.items[i], o.items[j] = o.items[j], o.items[i]
	*o.place(o.items[i]), *o.place(o.items[j]) = i, j
}

// Push implements heap.Interface.
func (o *ordered[T]) Push(item any) {
	added := item.(T)
	*o.place(added) = len(o.items)
	o.items = append(o.items, added)
}

// Pop implements heap.Interface.
func (o *ordered[T]) Pop() any {
	last := len(o.items) - 1
	item := o.items[last]
	var none T
	o.items[last] = none
	o.items = o.items[:last]
	return item
}
