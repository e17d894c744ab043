package machineset

import (
	"cmp"
	"context"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// nodeIndex finds Machines by the Node that they refer to.
const nodeIndex machineapi.NodeIndex = "machineset.status.nodeRef.name"

const (
	defaultConcurrency = 4
	// maxRetry is the longest delay before refused Machines are created again. No event says that a
	// quota has room or that a CRD is back.
	maxRetry = 30 * time.Second
)

// SetupWithManager creates a Controller and registers it, its index and its watches with the
// manager. Client, Reader and Recorder default to the manager's. ctx is used during the call only.
func SetupWithManager(ctx context.Context, mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	options.MaxRetry = cmp.Or(options.MaxRetry, maxRetry)
	c, err := New(options)
	if err != nil {
		return err
	}
	if err := nodeIndex.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(&machinev1beta1.MachineSet{}).
			Owns(&machinev1beta1.Machine{}, builder.WithPredicates(pipeline.Changes(), replicaChanged())).
			Watches(&machinev1beta1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.setsForOrphan),
				builder.WithPredicates(pipeline.Changes(), replicaChanged()))
		options.WatchNodes(build, handler.EnqueueRequestsFromMapFunc(c.setsForNode), pipeline.Changes(), readinessChanged())
	})
}

// setsForOrphan returns every MachineSet that selects a Machine without a controller, as each may
// adopt it.
func (c *Controller) setsForOrphan(ctx context.Context, object client.Object) []reconcile.Request {
	if metav1.GetControllerOfNoCopy(object) != nil {
		return nil
	}
	sets := &machinev1beta1.MachineSetList{}
	if err := c.client.List(ctx, sets, client.InNamespace(object.GetNamespace()),
		client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list MachineSets for a Machine without a controller", "Machine",
			object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		selector, err := metav1.LabelSelectorAsSelector(&sets.Items[i].Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(object.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: keyOf(&sets.Items[i])})
		}
	}
	return requests
}

// setsForNode returns the MachineSets of the Machines that refer to a Node.
func (c *Controller) setsForNode(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, machine := range nodeIndex.Machines(ctx, c.client, object.GetName()) {
		owner := metav1.GetControllerOfNoCopy(&machine)
		if owner == nil || owner.Kind != "MachineSet" || groupOf(owner.APIVersion) != machinev1beta1.GroupName {
			continue
		}
		requests = append(requests, reconcile.Request{
			NamespacedName: types.NamespacedName{Namespace: machine.Namespace, Name: owner.Name},
		})
	}
	return requests
}

// readinessChanged filters for Nodes that are created or deleted, and Nodes whose Ready condition
// has changed. Heartbeats, which are nearly all changes of Nodes, are left out.
func readinessChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Node)
			if !ok {
				return false
			}
			after, ok := e.ObjectNew.(*corev1.Node)
			if !ok {
				return false
			}
			x, y := readyCondition(before), readyCondition(after)
			return x.Status != y.Status || !x.LastTransitionTime.Equal(&y.LastTransitionTime)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func groupOf(apiVersion string) string {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return version.Group
}
