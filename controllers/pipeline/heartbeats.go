package pipeline

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// batchPause is how long changes of Nodes wait for others, and about the most by which they are late.
	batchPause = time.Second
	// batchGap is how long no event has come when a batch is complete, and batchSize how many changes are.
	batchGap  = 10 * time.Millisecond
	batchSize = 100
)

// dialer has TCP find out within 30 s that the other end is gone. client-go does so for HTTP/2, by pings, and leaves HTTP/1.1 to TCP's five minutes.
var dialer = &net.Dialer{
	Timeout:         30 * time.Second,
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
}

// NewInformer returns what makes an informer for each kind of object, as cache.Options.NewInformer does. That of Nodes takes their changes in batches: thousands
// of Nodes have several heartbeats each second, and to wake all that each of them passes through costs more than what is done about it. It has a connection to
// the API server of its own, with the given configuration, over which it watches all Nodes.
func NewInformer(config *rest.Config) (func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer, error) {
	nodes, err := newNodesClient(config)
	if err != nil {
		return nil, err
	}
	return func(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := object.(*corev1.Node); ok {
			from = inBatches(nodes)
		}
		return toolscache.NewSharedIndexInformer(from, object, resync, by)
	}, nil
}

// newNodesClient returns a client whose watches have a connection each. One of HTTP/2, which a manager shares, is read whenever something comes; one of HTTP/1.1
// only when whoever watches reads.
func newNodesClient(config *rest.Config) (typedcorev1.NodeInterface, error) {
	own := rest.CopyConfig(config)
	own.NextProtos = []string{"http/1.1"}
	if own.Dial == nil {
		own.Dial = dialer.DialContext
	}
	core, err := typedcorev1.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("creating a client for Nodes: %w", err)
	}
	return core.Nodes(), nil
}

func inBatches(nodes typedcorev1.NodeInterface) toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			watched, err := nodes.Watch(ctx, o)
			if err != nil {
				return nil, fmt.Errorf("watching Nodes: %w", err)
			}
			b := &batches{from: watched, events: make(chan watch.Event, batchSize), stopped: make(chan struct{})}
			go b.run()
			return b, nil
		},
	}
}

// batches is a watch that passes changes on together, and then pauses. What comes meanwhile stays in the connection, where it wakes nobody.
type batches struct {
	from    watch.Interface
	events  chan watch.Event
	stop    sync.Once
	stopped chan struct{}
}

// ResultChan implements watch.Interface.
func (b *batches) ResultChan() <-chan watch.Event { return b.events }

// Stop implements watch.Interface.
func (b *batches) Stop() {
	b.stop.Do(func() { close(b.stopped) })
	b.from.Stop()
}

// run passes events on until there are no more, or nobody wants them. Only changes wait, and are followed by a pause: the Nodes that are there first may come
// as events too (WatchList), which the start of a manager waits for.
func (b *batches) run() {
	defer close(b.events)
	gap := time.NewTimer(batchGap)
	defer gap.Stop()
	var batch []watch.Event
	for {
		select {
		case event, ok := <-b.from.ResultChan():
			if !ok {
				b.send(batch)
				return
			}
			batch = append(batch, event)
			if event.Type == watch.Modified && len(batch) < batchSize {
				gap.Reset(batchGap)
				continue
			}
			if !b.send(batch) {
				return
			}
		case <-gap.C:
			if len(batch) > 0 && (!b.send(batch) || !b.pause()) {
				return
			}
		case <-b.stopped:
			return
		}
		clear(batch)
		batch = batch[:0]
	}
}

// send reports whether someone has taken the events, or will.
func (b *batches) send(events []watch.Event) bool {
	for _, event := range events {
		select {
		case b.events <- event:
		case <-b.stopped:
			return false
		}
	}
	return true
}

// pause reports whether it is still wanted that it ends.
func (b *batches) pause() bool {
	timer := time.NewTimer(batchPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.stopped:
		return false
	}
}
