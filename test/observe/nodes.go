package observe

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// uidLabel is what a Node of the kubemark modules says of its Machine.
const uidLabel = "machine-iac.io/machine-uid"

// NodeLog writes down every Node of a Machine that there ever was.
type NodeLog struct {
	stop context.CancelFunc

	mu   sync.Mutex
	made map[string][]types.UID
}

// WatchNodes begins a log, which ends with Close.
func WatchNodes(ctx context.Context, clients kubernetes.Interface) (*NodeLog, error) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &NodeLog{stop: stop, made: map[string][]types.UID{}}
	informer := informers.NewSharedInformerFactory(clients, 0).Core().V1().Nodes().Informer()
	// An API server that is away is no reason to write about it.
	if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
		return n, err
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: n.see, UpdateFunc: func(_, now any) { n.see(now) }}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return n, err
	}
	go informer.RunWithContext(watching)
	syncing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !cache.WaitForCacheSync(syncing.Done(), informer.HasSynced) {
		return n, errors.New("watching Nodes: the API server did not list them within a minute")
	}
	return n, nil
}

// Close ends the log.
func (n *NodeLog) Close() { n.stop() }

func (n *NodeLog) see(object any) {
	node, ok := object.(*corev1.Node)
	if !ok || node.Labels[uidLabel] == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if machine := node.Labels[uidLabel]; !slices.Contains(n.made[machine], node.UID) {
		n.made[machine] = append(n.made[machine], node.UID)
	}
}

// Made returns the UIDs of the Nodes that each Machine, by its UID, ever had.
func (n *NodeLog) Made() map[string][]types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	made := maps.Clone(n.made)
	for machine, uids := range made {
		made[machine] = slices.Clone(uids)
	}
	return made
}

// Forget begins anew. Nodes that are there are written down at their next change.
func (n *NodeLog) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made = map[string][]types.UID{}
}
