package pipeline

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Nodes is a cache that passes Node events to all handlers one after another. Each handler of the
// cache itself has two goroutines that every event wakes, which costs more than the handling:
// nearly all events are heartbeats of thousands of Nodes.
type Nodes struct {
	cache.Cache
	events nodeEvents
}

// NewNodes returns Nodes of a cache.
func NewNodes(of cache.Cache) *Nodes { return &Nodes{Cache: of} }

// WatchNodes makes a controller watch Nodes.
func (c *Common) WatchNodes(build *builder.Builder, handler handler.EventHandler, predicates ...predicate.Predicate) {
	build.WatchesRawSource(source.Kind(c.Nodes, client.Object(&corev1.Node{}), handler, predicates...))
}

// GetInformer implements cache.Informers, for Nodes only.
func (n *Nodes) GetInformer(ctx context.Context, object client.Object,
	options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := n.Cache.GetInformer(ctx, object, options...)
	if _, ok := object.(*corev1.Node); err != nil || !ok {
		return informer, err
	}
	return &nodeInformer{Informer: informer, nodes: n, ctx: ctx}, nil
}

// nodeInformer accepts the handlers of those that watch Nodes. Handlers stay as long as the cache.
type nodeInformer struct {
	cache.Informer
	nodes *Nodes
	// ctx is the context of the call to GetInformer.
	ctx context.Context //nolint:containedctx // handlers are added without one
}

// AddEventHandlerWithOptions implements cache.Informer. The handler first receives the existing
// Nodes.
func (i *nodeInformer) AddEventHandlerWithOptions(added toolscache.ResourceEventHandler,
	options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	events := &i.nodes.events
	events.mu.Lock() // no event may come between the list and later events
	defer events.mu.Unlock()
	if events.registration == nil {
		registration, err := i.Informer.AddEventHandlerWithOptions(events, options)
		if err != nil {
			return nil, fmt.Errorf("watching Nodes: %w", err)
		}
		events.registration = registration
	}
	present := &corev1.NodeList{}
	if err := i.nodes.List(i.ctx, present, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	for n := range present.Items {
		added.OnAdd(&present.Items[n], true)
	}
	events.handlers = append(events.handlers, added)
	return events.registration, nil
}

// nodeEvents is the only handler registered with the cache.
type nodeEvents struct {
	mu sync.Mutex
	// registration is the handler's registration with the cache; nil before the first handler was
	// added.
	registration toolscache.ResourceEventHandlerRegistration
	handlers     []toolscache.ResourceEventHandler
}

// OnAdd implements toolscache.ResourceEventHandler. Each handler received the initial Nodes when it
// was added.
func (e *nodeEvents) OnAdd(object any, isInInitialList bool) {
	if isInInitialList {
		return
	}
	e.each(func(h toolscache.ResourceEventHandler) { h.OnAdd(object, false) })
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (e *nodeEvents) OnUpdate(before, after any) {
	e.each(func(h toolscache.ResourceEventHandler) { h.OnUpdate(before, after) })
}

// OnDelete implements toolscache.ResourceEventHandler.
func (e *nodeEvents) OnDelete(object any) {
	e.each(func(h toolscache.ResourceEventHandler) { h.OnDelete(object) })
}

func (e *nodeEvents) each(do func(toolscache.ResourceEventHandler)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.handlers {
		do(h)
	}
}
