package pipeline

import (
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Common holds the options of all controllers. A controller's own Options embed it.
type Common struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Reader reads from the API server.
	Reader client.Reader
	// Nodes is shared by the controllers that watch Nodes; default is the manager's cache.
	Nodes *Nodes
	// Recorder sends events.
	Recorder events.EventRecorder
	// Clock defaults to the system clock.
	Clock clock.PassiveClock
	// MaxConcurrentReconciles bounds the objects reconciled at a time. Zero is the controller's
	// default.
	MaxConcurrentReconciles int
	// MaxRetry is the longest delay before a failed reconcile is retried. Zero keeps the rate limiter
	// of controller-runtime.
	MaxRetry time.Duration
}

// SetClock sets Clock to the real one when it is nil.
func (c *Common) SetClock() {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
}

// Complete sets missing options from the manager, and MaxConcurrentReconciles to concurrency. name
// is the controller's name in events.
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

// Register registers a controller with the manager. watch adds the objects that it reconciles and
// its other watches.
func (c *Common) Register(mgr manager.Manager, name string, r reconcile.Reconciler,
	watch func(*builder.Builder)) error {
	options := controller.Options{MaxConcurrentReconciles: c.MaxConcurrentReconciles}
	if c.MaxRetry > 0 {
		options.RateLimiter = newRetries(clock.RealClock{}, c.MaxRetry)
	}
	build := builder.ControllerManagedBy(mgr).Named(name).WithOptions(options)
	watch(build)
	if err := build.Complete(r); err != nil {
		return fmt.Errorf("registering the %s controller: %w", name, err)
	}
	return nil
}
