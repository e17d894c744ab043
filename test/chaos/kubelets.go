package chaos

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubelets simulate those of the cloud's servers: each active server joins once, with a Node. They also simulate the
// cloud controller, which removes the Node of a server that has been gone for a while.
type kubelets struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	joined map[string]string // from server ID to Node
	gone   map[string]time.Time
}

const nodeGrace = 6 * time.Second

func startKubelets(ctx context.Context, w *world) *kubelets {
	playing, stop := context.WithCancel(context.WithoutCancel(ctx))
	k := &kubelets{stop: stop, joined: map[string]string{}, gone: map[string]time.Time{}}
	k.done.Go(func() {
		for {
			select {
			case <-playing.Done():
				return
			case <-time.After(500 * time.Millisecond):
				k.play(playing, w)
			}
		}
	})
	return k
}

func (k *kubelets) play(ctx context.Context, w *world) {
	k.mu.Lock()
	defer k.mu.Unlock()
	there := map[string]bool{}
	for _, server := range w.cloud.Servers() {
		there[server.ID] = true
		if k.joined[server.ID] != "" || server.Status != "ACTIVE" {
			continue
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:        "node-of-" + server.Name + "-" + server.ID[:4],
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Spec: corev1.NodeSpec{ProviderID: "openstack:///" + server.ID},
		}
		if w.client.Create(ctx, node) == nil { // otherwise retried at the next poll
			k.joined[server.ID] = node.Name
		}
	}
	for id, name := range k.joined {
		switch since, known := k.gone[id]; {
		case there[id]:
		case !known:
			k.gone[id] = time.Now()
		case time.Since(since) > nodeGrace:
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if client.IgnoreNotFound(w.client.Delete(ctx, node)) == nil {
				delete(k.joined, id)
				delete(k.gone, id)
			}
		}
	}
}

// all returns the Nodes that have joined, by server ID.
func (k *kubelets) all() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.joined)
}

func (k *kubelets) close() {
	k.stop()
	k.done.Wait()
}
