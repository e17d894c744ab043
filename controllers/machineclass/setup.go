package machineclass

import (
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const defaultConcurrency = 1

// SetupWithManager creates a Controller and registers it and its watch with the manager. The
// manager only starts if the cluster has the CRD. Client and Recorder default to the manager's.
func SetupWithManager(mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	c, err := New(options)
	if err != nil {
		return err
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(newClass(), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	})
}
