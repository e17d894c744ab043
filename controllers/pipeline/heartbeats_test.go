package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// watched has the events of a watch of Nodes in batches.
type watched struct {
	from *watch.FakeWatcher
	of   watch.Interface
	// taken are the names of Nodes by when, since the start, their events came.
	taken map[time.Duration][]string
	ended bool
}

// nodes has a watch, or an error for all.
type nodes struct {
	typedcorev1.NodeInterface

	watched watch.Interface
	err     error
}

func (n nodes) List(context.Context, metav1.ListOptions) (*corev1.NodeList, error) { return nil, n.err }

func (n nodes) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return n.watched, n.err
}

func watchOf(t *testing.T, of nodes) watch.Interface {
	t.Helper()
	w, err := toolscache.ToListerWatcherWithContext(inBatches(of)).WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func watchInBatches(t *testing.T) *watched {
	t.Helper()
	w := &watched{from: watch.NewFake(), taken: map[time.Duration][]string{}}
	w.of = watchOf(t, nodes{watched: w.from})
	began := time.Now()
	go func() {
		for event := range w.of.ResultChan() {
			at := time.Since(began)
			w.taken[at] = append(w.taken[at], event.Object.(*corev1.Node).Name)
		}
		w.ended = true
	}()
	return w
}

// send has as many events of a type come as there are names, one each so often.
func (w *watched) send(action watch.EventType, each time.Duration, names string) {
	for name := range strings.SplitSeq(names, "") {
		go w.from.Action(action, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		time.Sleep(each)
		synctest.Wait()
	}
}

func (w *watched) want(t *testing.T, want map[time.Duration]string) {
	t.Helper()
	synctest.Wait()
	for at, names := range want {
		if got := strings.Join(w.taken[at], ""); got != names {
			t.Errorf("after %s: %q, want %q", at, got, names)
		}
	}
	if len(w.taken) != len(want) {
		t.Errorf("events were taken at %d times, want %d: %v", len(w.taken), len(want), w.taken)
	}
}

func TestChangesOfNodesAreTakenInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchInBatches(t)
		w.send(watch.Modified, 200*time.Millisecond, "abcdefgh")
		time.Sleep(10 * time.Second)
		w.send(watch.Modified, time.Hour, "i")
		w.want(t, map[time.Duration]string{
			batchGap:                  "a", // nothing had come for a while
			batchPause + 2*batchGap:   "bcdef",
			2*batchPause + 3*batchGap: "gh",
			8*200*time.Millisecond + 10*time.Second + batchGap: "i",
		})
		w.of.Stop()
	})
}

func TestTheFirstNodesAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchInBatches(t)
		w.send(watch.Added, 300*time.Millisecond, "abc")
		w.send(watch.Deleted, 300*time.Millisecond, "d")
		w.send(watch.Bookmark, 300*time.Millisecond, "e")
		w.want(t, map[time.Duration]string{
			0: "a", 300 * time.Millisecond: "b", 600 * time.Millisecond: "c", 900 * time.Millisecond: "d", 1200 * time.Millisecond: "e",
		})
		w.of.Stop()
	})
}

func TestManyChangesAreTakenWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchInBatches(t)
		for range 2*batchSize + 1 {
			w.from.Modify(named("a"))
		}
		time.Sleep(batchPause)
		w.want(t, map[time.Duration]string{0: strings.Repeat("a", 2*batchSize), batchGap: "a"})
		w.of.Stop()
	})
}

func TestChangesThatWaitAreTakenBeforeWhatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchInBatches(t)
		w.from.Modify(named("b"))
		w.from.Modify(named("a"))
		w.from.Delete(named("b"))
		w.want(t, map[time.Duration]string{0: "bab"})
		w.of.Stop()
	})
}

func TestChangesBeforeTheEndAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchInBatches(t)
		w.from.Modify(named("a"))
		w.from.Modify(named("b"))
		w.from.Stop()
		w.want(t, map[time.Duration]string{0: "ab"})
	})
}

func TestAWatchInBatchesEnds(t *testing.T) {
	for name, c := range map[string]struct {
		while func(*watched)
		end   func(*watched)
	}{
		"with the connection":  {end: func(w *watched) { w.from.Stop() }},
		"when it is stopped":   {end: func(w *watched) { w.of.Stop() }},
		"when stopped twice":   {end: func(w *watched) { w.of.Stop(); w.of.Stop() }},
		"stopped in a pause":   {while: func(w *watched) { w.send(watch.Modified, batchPause/2, "a") }, end: func(w *watched) { w.of.Stop() }},
		"with it, after pause": {while: func(w *watched) { w.send(watch.Modified, batchPause/2, "a") }, end: func(w *watched) { w.from.Stop(); time.Sleep(batchPause) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watchInBatches(t)
				if c.while != nil {
					c.while(w)
				}
				c.end(w)
				synctest.Wait()
				if !w.ended {
					t.Error("it goes on")
				}
			})
		})
	}
}

func TestAWatchInBatchesThatNobodyReadsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a goroutine that stays fails it
		from := watch.NewFake()
		w := watchOf(t, nodes{watched: from})
		from.Modify(&corev1.Node{})
		w.Stop()
	})
}

func TestAWatchOfNodesThatFailsIsReported(t *testing.T) {
	refused := errors.New("refused")
	from := toolscache.ToListerWatcherWithContext(inBatches(nodes{err: refused}))
	if _, err := from.WatchWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, refused) {
		t.Errorf("a watch: %v", err)
	}
	if _, err := from.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, refused) {
		t.Errorf("a list: %v", err)
	}
}
