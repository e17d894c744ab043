package drain

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const defaultConcurrency = 4

// SetupWithManager creates a Controller and registers it, its watch and its pool with the manager.
// Client and Recorder default to the manager's.
func SetupWithManager(mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	c, err := New(options)
	if err != nil {
		return err
	}
	if err := mgr.Add(c.pool); err != nil {
		return fmt.Errorf("adding the pool of drains: %w", err)
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(&machinev1beta1.Machine{}, builder.WithPredicates(drainChanged())).
			WatchesRawSource(source.Channel(c.pool.events, &handler.EnqueueRequestForObject{}))
	})
}
