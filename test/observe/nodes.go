package observe

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// NodeLog writes down every Node that there ever was, but for those of control planes.
type NodeLog struct {
	stop context.CancelFunc

	mu      sync.Mutex
	made    []nodeMade
	present map[types.UID]bool
}

type nodeMade struct {
	name string
	uid  types.UID
	// machine is the UID of the Machine that it says it is of.
	machine string
}

// WatchNodes begins a log, which ends with Close.
func WatchNodes(ctx context.Context, clients kubernetes.Interface) (*NodeLog, error) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &NodeLog{stop: stop, present: map[types.UID]bool{}}
	informer := informers.NewSharedInformerFactory(clients, 0).Core().V1().Nodes().Informer()
	// An API server that is away is no reason to write about it.
	if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
		return n, err
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: n.see, UpdateFunc: func(_, now any) { n.see(now) }, DeleteFunc: n.miss}
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
	if !ok || ControlPlane(node) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.present[node.UID] = true
	if !slices.ContainsFunc(n.made, func(one nodeMade) bool { return one.uid == node.UID }) {
		n.made = append(n.made, nodeMade{name: node.Name, uid: node.UID, machine: node.Labels[UIDLabel]})
	}
}

func (n *NodeLog) miss(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if node, ok := object.(*corev1.Node); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.present, node.UID)
	}
}

// ControlPlane reports whether a Node is one of a control plane, which has no Machine.
func ControlPlane(node *corev1.Node) bool {
	_, labelled := node.Labels["node-role.kubernetes.io/control-plane"]
	return labelled
}

// Count returns how many Nodes there are.
func (n *NodeLog) Count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.present)
}

// UIDs returns those of all Nodes that ever had a name.
func (n *NodeLog) UIDs(name string) []types.UID {
	return n.by(func(one nodeMade) string { return one.name })[name]
}

// ByName returns the UIDs of all Nodes, by their names.
func (n *NodeLog) ByName() map[string][]types.UID {
	return n.by(func(one nodeMade) string { return one.name })
}

// ByMachine returns the UIDs of the Nodes that say of which Machine they are, by the UIDs of those.
func (n *NodeLog) ByMachine() map[string][]types.UID {
	made := n.by(func(one nodeMade) string { return one.machine })
	delete(made, "")
	return made
}

func (n *NodeLog) by(key func(nodeMade) string) map[string][]types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	grouped := map[string][]types.UID{}
	for _, one := range n.made {
		grouped[key(one)] = append(grouped[key(one)], one.uid)
	}
	return grouped
}

// Forget begins anew. Nodes that are there are written down at their next change.
func (n *NodeLog) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made = nil
}
