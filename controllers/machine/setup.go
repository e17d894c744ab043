package machine

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const defaultConcurrency = 10

// SetupWithManager creates a Controller and registers it and its watches with the manager. Client and Recorder default to the manager's.
func SetupWithManager(mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	c, err := New(options)
	if err != nil {
		return err
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(&machinev1beta1.Machine{}, builder.WithPredicates(machineChanged()))
		if options.Events != nil {
			build.WatchesRawSource(source.Channel(options.Events, &handler.EnqueueRequestForObject{}))
		}
	})
}
