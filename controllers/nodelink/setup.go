package nodelink

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// The indexes of Machines and Nodes. They have this package's name: the cache is shared, and no
// index may be registered twice.
const (
	providerIDIndex = "nodelink.providerID"
	internalIPIndex = "nodelink.internalIP"
)

const defaultConcurrency = 4

// SetupWithManager creates a Controller and registers it, its indexes and its watches with the
// manager. Client, Reader and Recorder default to the manager's. ctx is used during the call only.
func SetupWithManager(ctx context.Context, mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	c, err := New(options)
	if err != nil {
		return err
	}
	if err := registerIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	toNodes := handler.EnqueueRequestsFromMapFunc(c.nodesForMachine)
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		options.WatchNodes(build, &handler.EnqueueRequestForObject{}, updates(nodeChanged))
		options.WatchNodes(build, handler.EnqueueRequestsFromMapFunc(c.competingNodes), deletions())
		build.Watches(&machinev1beta1.Machine{}, toNodes, builder.WithPredicates(pipeline.Changes(),
			predicate.Or(updates(machineChanged), deletions())))
	})
}

func registerIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		name   string
		values client.IndexerFunc
	}{
		{&machinev1beta1.Machine{}, providerIDIndex, of(machineProviderID)},
		{&machinev1beta1.Machine{}, internalIPIndex, of(machineInternalIPs)},
		{&corev1.Node{}, providerIDIndex, of(nodeProviderID)},
		{&corev1.Node{}, internalIPIndex, of(nodeInternalIP)},
	} {
		if err := indexer.IndexField(ctx, index.object, index.name, index.values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.name, err)
		}
	}
	return nil
}

// of returns an IndexerFunc from a typed function. Objects of other types have no values.
func of[T client.Object](values func(T) []string) client.IndexerFunc {
	return func(object client.Object) []string {
		typed, ok := object.(T)
		if !ok {
			return nil
		}
		return values(typed)
	}
}

func machineProviderID(machine *machinev1beta1.Machine) []string {
	if id := machineapi.ProviderID(machine); id != "" {
		return []string{id}
	}
	return nil
}

func machineInternalIPs(machine *machinev1beta1.Machine) []string {
	return internalIPs(machine.Status.Addresses)
}

func internalIPs(addresses []corev1.NodeAddress) []string {
	var out []string
	for _, address := range addresses {
		if address.Type == corev1.NodeInternalIP && address.Address != "" && !slices.Contains(out, address.Address) {
			out = append(out, address.Address)
		}
	}
	return out
}

func nodeProviderID(node *corev1.Node) []string {
	if node.Spec.ProviderID == "" {
		return nil
	}
	return []string{node.Spec.ProviderID}
}

// nodeInternalIP returns the Node's first InternalIP only: others may be those of bridges, the same
// on every Node.
func nodeInternalIP(node *corev1.Node) []string {
	all := internalIPs(node.Status.Addresses)
	return all[:min(1, len(all))]
}

// nodesForMachine returns the Nodes that match a Machine.
func (c *Controller) nodesForMachine(ctx context.Context, object client.Object) []reconcile.Request {
	machine, ok := object.(*machinev1beta1.Machine)
	if !ok {
		return nil
	}
	nodes, err := nodesOf(ctx, c.client, machine)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the Nodes of a Machine", "Machine", keyOf(machine))
		return nil
	}
	return requestsFor(nodes)
}

// competingNodes returns the Nodes that match the same Machines as a Node that is being deleted.
func (c *Controller) competingNodes(ctx context.Context, object client.Object) []reconcile.Request {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil
	}
	machines, err := (&matchMachine{client: c.client}).machinesOf(ctx, node)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the Machines of a Node", "Node", node.Name)
		return nil
	}
	var requests []reconcile.Request
	for _, machine := range machines {
		requests = append(requests, c.nodesForMachine(ctx, machine)...)
	}
	return requests
}

func requestsFor(nodes []*corev1.Node) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(nodes))
	for _, node := range nodes {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: node.Name}})
	}
	return requests
}

// deletions filters for objects that are being deleted or have been: a competing one may then be
// linked.
func deletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// updates filters for creations and relevant updates of objects that are not being deleted. It
// ignores resyncs: links depend only on Nodes and Machines in the cache, whose changes are events.
func updates(matter func(before, after client.Object) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetDeletionTimestamp().IsZero() },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetDeletionTimestamp().IsZero() && matter(e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// nodeChanged ignores heartbeats, images and other frequent updates of a Node.
func nodeChanged(before, after client.Object) bool {
	x, ok := before.(*corev1.Node)
	if !ok {
		return false
	}
	y, ok := after.(*corev1.Node)
	if !ok {
		return false
	}
	return x.UID != y.UID || x.Spec.ProviderID != y.Spec.ProviderID ||
		!equality.Semantic.DeepEqual(internalIPs(x.Status.Addresses), internalIPs(y.Status.Addresses)) ||
		!equality.Semantic.DeepEqual(x.Labels, y.Labels) ||
		!equality.Semantic.DeepEqual(x.Annotations, y.Annotations) ||
		!equality.Semantic.DeepEqual(x.Spec.Taints, y.Spec.Taints)
}

// machineChanged ignores phases, conditions and provider status.
func machineChanged(before, after client.Object) bool {
	x, ok := before.(*machinev1beta1.Machine)
	if !ok {
		return false
	}
	y, ok := after.(*machinev1beta1.Machine)
	if !ok {
		return false
	}
	return x.UID != y.UID || machineapi.ProviderID(x) != machineapi.ProviderID(y) ||
		!equality.Semantic.DeepEqual(machineInternalIPs(x), machineInternalIPs(y)) ||
		!equality.Semantic.DeepEqual(x.Spec.ObjectMeta, y.Spec.ObjectMeta) ||
		!equality.Semantic.DeepEqual(x.Spec.Taints, y.Spec.Taints) ||
		!equality.Semantic.DeepEqual(x.Status.NodeRef, y.Status.NodeRef)
}
