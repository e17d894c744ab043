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
)

// nodeIndex finds Machines by the Node that they refer to.
const nodeIndex machineapi.NodeIndex = "machinehealthcheck.status.nodeRef.name"

const defaultConcurrency = 4

// SetupWithManager makes a Controller and registers it, its index and its watches with the manager. Client, Reader and Recorder
// come from the manager where options leave them out. ctx is used during the call only.
func SetupWithManager(ctx context.Context, mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	if options.Checks == nil {
		options.Checks = mgr.GetCache() // the manager's client would not read these from it
	}
	c, err := New(options)
	if err != nil {
		return err
	}
	if err := nodeIndex.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(written(), builder.WithPredicates(updates(checkMatters))).
			Watches(&machinev1beta1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.checksForMachine),
				builder.WithPredicates(updates(machineMatters))).
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(c.checksForNode), builder.WithPredicates(updates(nodeMatters)))
	})
}

// checksForMachine answers the MachineHealthChecks that select a Machine.
func (c *Controller) checksForMachine(ctx context.Context, object client.Object) []reconcile.Request {
	checks := writtenList()
	if err := c.checks.List(ctx, checks, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing MachineHealthChecks for a Machine", "Machine", object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range checks.Items {
		check, _, err := typed(&checks.Items[i])
		if err != nil {
			continue // its own reconcile tells
		}
		selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(object.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(check)})
		}
	}
	return requests
}

// checksForNode answers the MachineHealthChecks that select a Machine that refers to the Node.
func (c *Controller) checksForNode(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, machine := range nodeIndex.Machines(ctx, c.client, object.GetName()) {
		requests = append(requests, c.checksForMachine(ctx, &machine)...)
	}
	return requests
}

// updates lets through objects that come or go, changes that matter, and the informer's repeats.
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
			return before.GetResourceVersion() == after.GetResourceVersion() || before.GetUID() != after.GetUID() || matter(before, after)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// checkMatters leaves out the status, which is written here.
func checkMatters(before, after *unstructured.Unstructured) bool {
	return before.GetGeneration() != after.GetGeneration() || !maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// machineMatters leaves out what neither selects nor judges a Machine: most of its spec, conditions and provider status.
func machineMatters(before, after *machinev1beta1.Machine) bool {
	x, y := factsOf(before), factsOf(after)
	return x != y || !maps.Equal(before.Labels, after.Labels) ||
		after.Status.NodeRef == nil && (before.Status.LastUpdated.IsZero() != after.Status.LastUpdated.IsZero() || !startOf(before).Equal(startOf(after)))
}

// facts are what a Machine is judged by, besides its labels and the clock of its start.
type facts struct {
	node                        string
	failed, deleting, annotated bool
	owner                       types.UID
}

func factsOf(machine *machinev1beta1.Machine) facts {
	out := facts{failed: failed(machine), deleting: !machine.DeletionTimestamp.IsZero()}
	_, out.annotated = machine.Annotations[externalAnnotation]
	if machine.Status.NodeRef != nil {
		out.node = machine.Status.NodeRef.Name
	}
	if owner := metav1.GetControllerOfNoCopy(machine); owner != nil {
		out.owner = owner.UID
	}
	return out
}

// nodeMatters leaves out heartbeats, which are nearly all changes of Nodes.
func nodeMatters(before, after *corev1.Node) bool {
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
