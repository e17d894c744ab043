package machinedeployment

import (
	"cmp"
	"context"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	defaultConcurrency = 2
	// maxRetry is the longest delay before refused writes are retried.
	maxRetry = 30 * time.Second
)

// SetupWithManager creates a Controller and registers it and its watches with the manager, which only
// starts if the cluster serves MachineDeployments. Client, Reader and Recorder default to the
// manager's.
func SetupWithManager(mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	options.MaxRetry = cmp.Or(options.MaxRetry, maxRetry)
	c := New(options)
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		// A MachineSet's status changes when the readiness of its Nodes does, so Nodes need no watch.
		build.For(&v1beta1.MachineDeployment{}).
			Owns(&machinev1beta1.MachineSet{}, builder.WithPredicates(pipeline.Changes())).
			Watches(&machinev1beta1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(c.forOrphan),
				builder.WithPredicates(pipeline.Changes())).
			Watches(&machinev1beta1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.forMachine),
				builder.WithPredicates(pipeline.Changes(), machineChanged()))
	})
}

// SetupSetsWithManager registers a [Sets] with the manager. It needs no MachineDeployments.
func SetupSetsWithManager(mgr manager.Manager, options Options) error {
	const name = "machinesetrollout"
	options.Complete(mgr, name, defaultConcurrency)
	options.MaxRetry = cmp.Or(options.MaxRetry, maxRetry)
	c := NewSets(options)
	return options.Register(mgr, name, c, func(build *builder.Builder) {
		// A MachineSet's status changes when the readiness of its Nodes does, so Nodes need no watch.
		build.For(&machinev1beta1.MachineSet{}, builder.WithPredicates(asked())).
			Watches(&machinev1beta1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.setOf),
				builder.WithPredicates(pipeline.Changes(), machineChanged()))
	})
}

// asked filters for MachineSets whose rollout is or was asked for.
func asked() predicate.Predicate {
	filter := predicate.NewPredicateFuncs(rolling)
	filter.UpdateFunc = func(e event.UpdateEvent) bool { return rolling(e.ObjectOld) || rolling(e.ObjectNew) }
	return filter
}

// rolling reports whether a MachineSet has an annotation of a rollout.
func rolling(set client.Object) bool {
	annotations := set.GetAnnotations()
	return annotations[v1beta1.RolloutAnnotation]+annotations[v1beta1.SurgeAnnotation] != ""
}

// setOf returns the MachineSet of a Machine, if its rollout is asked for or the Machine is changing.
func (c *Sets) setOf(ctx context.Context, machine client.Object) []reconcile.Request {
	set := controllerSet(ctx, c.client, machine)
	if set == nil || !rolling(set) && machine.GetAnnotations()[v1beta1.MovedFromAnnotation] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(set)}}
}

// controllerSet returns the MachineSet that controls a Machine, or nil. If it cannot be read, it is gone
// or its own event follows.
func controllerSet(ctx context.Context, reader client.Reader, machine client.Object) *machinev1beta1.MachineSet {
	owner := metav1.GetControllerOfNoCopy(machine)
	if owner == nil || owner.Kind != setKind {
		return nil
	}
	set := &machinev1beta1.MachineSet{}
	key := types.NamespacedName{Namespace: machine.GetNamespace(), Name: owner.Name}
	if reader.Get(ctx, key, set, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	return set
}

// forOrphan returns the MachineDeployments that may adopt a MachineSet without a controller, and the
// one that holds it.
func (c *Controller) forOrphan(ctx context.Context, object client.Object) []reconcile.Request {
	set, ok := object.(*machinev1beta1.MachineSet)
	if !ok || metav1.GetControllerOfNoCopy(set) != nil {
		return nil
	}
	list := &v1beta1.MachineDeploymentList{}
	if err := c.client.List(ctx, list, client.InNamespace(set.Namespace)); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list MachineDeployments for a MachineSet without a controller",
			"MachineSet", set.Name)
		return nil
	}
	var requests []reconcile.Request
	if holder := set.Annotations[v1beta1.HoldAnnotation]; holder != "" {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: set.Namespace, Name: holder}})
	}
	for i := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(&list.Items[i].Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(set.Spec.Template.Labels)) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// forMachine returns the MachineDeployment of a Machine's MachineSet.
func (c *Controller) forMachine(ctx context.Context, object client.Object) []reconcile.Request {
	set := controllerSet(ctx, c.client, object)
	if set == nil {
		return nil
	}
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil || owner.Kind != v1beta1.MachineDeploymentKind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: set.Namespace, Name: owner.Name}}}
}

// machineChanged filters for what the status of a MachineSet does not show: Machines that are gone,
// and the progress of those that change in place.
func machineChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, beforeOK := e.ObjectOld.(*machinev1beta1.Machine)
			after, afterOK := e.ObjectNew.(*machinev1beta1.Machine)
			if !beforeOK || !afterOK {
				return true
			}
			moving := before.Annotations[v1beta1.MovedFromAnnotation] + after.Annotations[v1beta1.MovedFromAnnotation]
			return moving != "" && (before.Annotations[v1beta1.CheckedGenerationAnnotation] !=
				after.Annotations[v1beta1.CheckedGenerationAnnotation] ||
				!equality.Semantic.DeepEqual(upToDate(before), upToDate(after)))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// instanceUpToDate is the Machine controller's condition.
const instanceUpToDate machinev1beta1.ConditionType = "InstanceUpToDate"

func upToDate(machine *machinev1beta1.Machine) *machinev1beta1.Condition {
	return machineapi.FindCondition(machine.Status.Conditions, instanceUpToDate)
}
