package drain

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// SetupWithManager makes a Controller and registers it, its watch and its pool with the manager. Client and Recorder come from the
// manager where options leave them out.
func SetupWithManager(mgr manager.Manager, options Options) error {
	if options.Client == nil {
		options.Client = mgr.GetClient()
	}
	if options.Recorder == nil {
		options.Recorder = mgr.GetEventRecorder(Name)
	}
	options.setDefaults()
	c, err := New(options)
	if err != nil {
		return err
	}
	if err := mgr.Add(c.pool); err != nil {
		return fmt.Errorf("adding the pool of drains: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&machinev1beta1.Machine{}, builder.WithPredicates(worthALook())).
		WatchesRawSource(source.Channel(c.pool.events, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.MaxConcurrentReconciles}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("registering the drain controller: %w", err)
	}
	return nil
}
