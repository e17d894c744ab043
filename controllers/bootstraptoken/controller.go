package bootstraptoken

import (
	"context"
	"errors"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// Name is the controller's name in logs and metrics.
	Name = "bootstraptoken"

	defaultConcurrency = 1
)

// Options configure a Controller. MaxConcurrentReconciles is 1 when zero.
type Options struct {
	pipeline.Common

	// Identity returns the UID that a Machine's token is derived from. Required.
	Identity func(machine *machinev1beta1.Machine) types.UID
	// Remove revokes the token that is derived from a UID; it succeeds if there is none. Required.
	Remove func(ctx context.Context, identity types.UID) error
}

// SetupWithManager registers the controller and its watch with the manager.
func SetupWithManager(mgr manager.Manager, options Options) error {
	if options.Identity == nil || options.Remove == nil {
		return errors.New("creating the bootstraptoken controller: Identity and Remove must be set in its options")
	}
	options.Complete(mgr, Name, defaultConcurrency)
	// The name in a request is the token's identity, since the Machine may be gone.
	revoke := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, options.Remove(ctx, types.UID(request.Name))
	})
	toIdentity := func(_ context.Context, object client.Object) []reconcile.Request {
		machine, ok := object.(*machinev1beta1.Machine)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: string(options.Identity(machine))}}}
	}
	return options.Register(mgr, Name, revoke, func(build *builder.Builder) {
		build.Watches(&machinev1beta1.Machine{}, handler.EnqueueRequestsFromMapFunc(toIdentity),
			builder.WithPredicates(joinedOrDeleted()))
	})
}

// joinedOrDeleted filters for Machines that start to need no token, and for those that need none when
// the manager starts.
func joinedOrDeleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return needsNone(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return needsNone(e.ObjectNew) && !needsNone(e.ObjectOld) },
	}
}

func needsNone(object client.Object) bool {
	machine, ok := object.(*machinev1beta1.Machine)
	return ok && (machine.Status.NodeRef != nil || machine.DeletionTimestamp != nil)
}
