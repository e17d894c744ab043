package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// batchPause is how long changes of Nodes wait for others, and about the most by which they are late.
	batchPause = time.Second
	// batchGap is how long no event has come when a batch is complete, and batchSize how many changes are.
	batchGap  = 10 * time.Millisecond
	batchSize = 100
)

// NewInformer returns an informer, as cache.Options.NewInformer does. One of Nodes takes their changes in batches: thousands of Nodes have several heartbeats
// each second, and to wake all that each of them passes through costs more than what is done about it.
func NewInformer(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	if _, ok := object.(*corev1.Node); ok {
		from = inBatches(toolscache.ToListerWatcherWithContext(from))
	}
	return toolscache.NewSharedIndexInformer(from, object, resync, by)
}

func inBatches(from toolscache.ListerWatcherWithContext) toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListWithContextFunc: from.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			watched, err := from.WatchWithContext(ctx, o)
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
