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

// NodeLog records every Node that ever existed, except control planes.
type NodeLog struct {
	stop context.CancelFunc

	mu      sync.Mutex
	made    []nodeMade
	present map[types.UID]bool
}

type nodeMade struct {
	name string
	uid  types.UID
	// machine is the UID of the Machine in its annotation.
	machine string
}

// WatchNodes starts a log, which ends with Close.
func WatchNodes(ctx context.Context, clients kubernetes.Interface) (*NodeLog, error) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &NodeLog{stop: stop, present: map[types.UID]bool{}}
	informer := informers.NewSharedInformerFactory(clients, 0).Core().V1().Nodes().Informer()
	// Tests stop the API server, so do not log watch errors.
	if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
		return n, err
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: n.see, UpdateFunc: func(_, now any) { n.see(now) }, DeleteFunc: n.miss,
	}
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

// ControlPlane reports whether a Node belongs to a control plane, which has no Machine.
func ControlPlane(node *corev1.Node) bool {
	_, labelled := node.Labels["node-role.kubernetes.io/control-plane"]
	return labelled
}

// Count returns how many Nodes exist.
func (n *NodeLog) Count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.present)
}

// UIDs returns the UIDs of all Nodes that ever had a name.
func (n *NodeLog) UIDs(name string) []types.UID {
	return n.by(func(one nodeMade) string { return one.name })[name]
}

// ByName returns the UIDs of all Nodes by name.
func (n *NodeLog) ByName() map[string][]types.UID {
	return n.by(func(one nodeMade) string { return one.name })
}

// ByMachine returns the UIDs of Nodes by the UID of their Machine.
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

// Forget clears the log. Existing Nodes reappear at their next change.
func (n *NodeLog) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made = nil
}
