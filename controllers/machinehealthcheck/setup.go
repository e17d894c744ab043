package machinehealthcheck

import (
	"context"
	"maps"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
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
const nodeIndex machineapi.NodeIndex = "machinehealthcheck.status.nodeRef.name"

const defaultConcurrency = 4

// SetupWithManager creates a Controller and registers it, its index and its watches with the
// manager. Client, Reader and Recorder default to the manager's. ctx is used during the call only.
func SetupWithManager(ctx context.Context, mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	if options.Checks == nil {
		options.Checks = mgr.GetCache() // the manager's client does not read unstructured objects from the cache
	}
	c, err := New(options)
	if err != nil {
		return err
	}
	if err := nodeIndex.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(newUnstructured(), builder.WithPredicates(updates(checkChanged))).
			Watches(&machinev1beta1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.checksForMachine),
				builder.WithPredicates(pipeline.Changes(), updates(machineChanged)))
		options.WatchNodes(build, handler.EnqueueRequestsFromMapFunc(c.checksForNode), pipeline.Changes(),
			updates(nodeChanged))
	})
}

// checksForMachine returns the MachineHealthChecks that select a Machine.
func (c *Controller) checksForMachine(ctx context.Context, object client.Object) []reconcile.Request {
	checks := newUnstructuredList()
	if err := c.checks.List(ctx, checks, client.InNamespace(object.GetNamespace()),
		client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the MachineHealthChecks of a Machine", "Machine", object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range checks.Items {
		check, _, err := fromUnstructured(&checks.Items[i])
		if err != nil {
			continue // its own reconcile reports it
		}
		selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(object.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(check)})
		}
	}
	return requests
}

// checksForNode returns the MachineHealthChecks that select a Machine that refers to the Node.
func (c *Controller) checksForNode(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, machine := range nodeIndex.Machines(ctx, c.client, object.GetName()) {
		requests = append(requests, c.checksForMachine(ctx, &machine)...)
	}
	return requests
}

// updates filters for objects that are created or deleted, for changes that matter, and for
// resyncs.
func updates[T client.Object](matter func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(T)
			if !ok {
				return false
			}
			after, ok := e.ObjectNew.(T)
			if !ok {
				return false
			}
			return before.GetResourceVersion() == after.GetResourceVersion() || before.GetUID() != after.GetUID() ||
				matter(before, after)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// checkChanged ignores the status, which is written here.
func checkChanged(before, after *unstructured.Unstructured) bool {
	return before.GetGeneration() != after.GetGeneration() || !maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// machineChanged ignores what affects neither selection nor health: most of the spec, conditions
// and provider status.
func machineChanged(before, after *machinev1beta1.Machine) bool {
	x, y := relevantFieldsOf(before), relevantFieldsOf(after)
	return x != y || !maps.Equal(before.Labels, after.Labels) ||
		after.Status.NodeRef == nil && (before.Status.LastUpdated.IsZero() != after.Status.LastUpdated.IsZero() ||
			!startOf(before).Equal(startOf(after)))
}

// relevantFields are what selection and health depend on, besides labels and the start of the
// startup timeout.
type relevantFields struct {
	node                        string
	failed, deleting, annotated bool
	owner                       types.UID
}

func relevantFieldsOf(machine *machinev1beta1.Machine) relevantFields {
	out := relevantFields{failed: failed(machine), deleting: !machine.DeletionTimestamp.IsZero()}
	_, out.annotated = machine.Annotations[externalAnnotation]
	if machine.Status.NodeRef != nil {
		out.node = machine.Status.NodeRef.Name
	}
	if owner := metav1.GetControllerOfNoCopy(machine); owner != nil {
		out.owner = owner.UID
	}
	return out
}

// nodeChanged ignores heartbeats, which are nearly all changes of Nodes.
func nodeChanged(before, after *corev1.Node) bool {
	if len(before.Status.Conditions) != len(after.Status.Conditions) {
		return true
	}
	for i := range after.Status.Conditions {
		now := &after.Status.Conditions[i]
		then := findCondition(before, now.Type)
		if then == nil || then.Status != now.Status || !then.LastTransitionTime.Equal(&now.LastTransitionTime) {
			return true
		}
	}
	return false
}
