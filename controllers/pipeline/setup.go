package pipeline

import (
	"fmt"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Common are the options that all controllers have. A controller's own Options embed them.
type Common struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Reader reads from the API server.
	Reader client.Reader
	// Nodes are what controllers watch Nodes with, one for all; those of the manager's cache when nil.
	Nodes *Nodes
	// Recorder sends events.
	Recorder events.EventRecorder
	// Clock is the real one when nil.
	Clock clock.PassiveClock
	// MaxConcurrentReconciles is how many objects are reconciled at a time. Zero is the controller's default.
	MaxConcurrentReconciles int
}

// SetClock sets Clock to the real one when it is nil.
func (c *Common) SetClock() {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
}

// Complete sets the options that are left out to those of the manager, and MaxConcurrentReconciles to concurrency. name is the
// controller's name, which its events bear.
func (c *Common) Complete(mgr manager.Manager, name string, concurrency int) {
	if c.Client == nil {
		c.Client = mgr.GetClient()
	}
	if c.Reader == nil {
		c.Reader = mgr.GetAPIReader()
	}
	if c.Nodes == nil {
		c.Nodes = NewNodes(mgr.GetCache())
	}
	if c.Recorder == nil {
		c.Recorder = mgr.GetEventRecorder(name)
	}
	if c.MaxConcurrentReconciles == 0 {
		c.MaxConcurrentReconciles = concurrency
	}
	c.SetClock()
}

// Register registers a controller with the manager. watch adds the objects that it reconciles and its other watches.
func (c *Common) Register(mgr manager.Manager, name string, r reconcile.Reconciler, watch func(*builder.Builder)) error {
	build := builder.ControllerManagedBy(mgr).
		Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: c.MaxConcurrentReconciles})
	watch(build)
	if err := build.Complete(r); err != nil {
		return fmt.Errorf("registering the %s controller: %w", name, err)
	}
	return nil
}
