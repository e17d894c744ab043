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

// Nodes are a cache whose events of Nodes go to all that watch them one after another. Each handler of the cache itself has two goroutines that every event
// wakes, which costs more than what is done about it: nearly all are heartbeats, and thousands of Nodes have them all the time.
type Nodes struct {
	cache.Cache
	events nodeEvents
}

// NewNodes returns Nodes of a cache.
func NewNodes(of cache.Cache) *Nodes { return &Nodes{Cache: of} }

// WatchNodes has a controller watch Nodes.
func (c *Common) WatchNodes(build *builder.Builder, handler handler.EventHandler, predicates ...predicate.Predicate) {
	build.WatchesRawSource(source.Kind(c.Nodes, client.Object(&corev1.Node{}), handler, predicates...))
}

// GetInformer implements cache.Informers, for Nodes alone.
func (n *Nodes) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := n.Cache.GetInformer(ctx, object, options...)
	if _, ok := object.(*corev1.Node); err != nil || !ok {
		return informer, err
	}
	return &nodeInformer{Informer: informer, nodes: n, ctx: ctx}, nil
}

// nodeInformer is what one that watches Nodes adds its handler to. Handlers stay as long as the cache.
type nodeInformer struct {
	cache.Informer
	nodes *Nodes
	// ctx is the one that the informer was asked for with.
	ctx context.Context //nolint:containedctx // handlers are added without one
}

// AddEventHandlerWithOptions implements cache.Informer. The handler is given the Nodes that are there first.
func (i *nodeInformer) AddEventHandlerWithOptions(added toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	events := &i.nodes.events
	events.mu.Lock() // so that nothing happens between the list and what follows it
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

// nodeEvents are the one handler of the cache.
type nodeEvents struct {
	mu sync.Mutex
	// registration is that with the cache; nil before the first handler was added.
	registration toolscache.ResourceEventHandlerRegistration
	handlers     []toolscache.ResourceEventHandler
}

// OnAdd implements toolscache.ResourceEventHandler. The Nodes that were there first were given to each handler when it was added.
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
