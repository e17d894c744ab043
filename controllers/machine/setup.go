package machine

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const defaultConcurrency = 10

// SetupWithManager makes a Controller and registers it and its watches with the manager. Client and Recorder come from the manager
// where options leave them out.
func SetupWithManager(mgr manager.Manager, options Options) error {
	if options.Client == nil {
		options.Client = mgr.GetClient()
	}
	if options.Recorder == nil {
		options.Recorder = mgr.GetEventRecorder(Name)
	}
	if options.MaxConcurrentReconciles == 0 {
		options.MaxConcurrentReconciles = defaultConcurrency
	}
	c, err := New(options)
	if err != nil {
		return err
	}
	build := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&machinev1beta1.Machine{}, builder.WithPredicates(worthALook())).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.MaxConcurrentReconciles})
	if options.Events != nil {
		build = build.WatchesRawSource(source.Channel(options.Events, &handler.EnqueueRequestForObject{}))
	}
	if err := build.Complete(c); err != nil {
		return fmt.Errorf("registering the machine controller: %w", err)
	}
	return nil
}
