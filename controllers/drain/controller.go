package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// Name is the controller's name in logs, metrics and events.
const Name = "drain"

const (
	// waitInterval is the retry interval for what depends on another Machine: the drain of another
	// control-plane Node, or room in the queue. It also applies to a Node that could not be
	// cordoned.
	waitInterval = 20 * time.Second
)

// Options configure a Controller. Client, Recorder and Clientset are required.
// MaxConcurrentReconciles defaults to 4. No reconcile waits for a drain.
type Options struct {
	pipeline.Common

	// Clientset reads Nodes and pods from the API server, cordons and evicts. Nodes with many pods
	// cause many requests, so it should have rate limits of its own.
	Clientset kubernetes.Interface
	// Metrics are new ones when nil.
	Metrics *Metrics
	// MaxConcurrentDrains is how many attempts run at a time; default 10.
	MaxConcurrentDrains int
	// MaxWaitingDrains bounds the queue of attempts; default 1000. Further Machines are requeued.
	MaxWaitingDrains int
	// AttemptTimeout bounds one attempt; default 20 seconds.
	AttemptTimeout time.Duration
	// RetryBase is the backoff after an attempt that left pods. It doubles up to RetryMax; defaults
	// 5 seconds and 2 minutes. The Machine API Operator goes up to 1000 seconds, but an eviction
	// that has become possible should not wait that long.
	RetryBase, RetryMax time.Duration
}

func (o *Options) setDefaults() {
	setDefault(&o.MaxConcurrentDrains, 10)
	setDefault(&o.MaxWaitingDrains, 1000)
	setDefault(&o.AttemptTimeout, 20*time.Second)
	setDefault(&o.RetryBase, 5*time.Second)
	setDefault(&o.RetryMax, 2*time.Minute)
	o.SetClock()
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Controller drains the Nodes of Machines that are being deleted.
type Controller struct {
	client   client.Client
	recorder events.Recorder
	clock    clock.PassiveClock
	memory   *memory
	pool     *pool
	steps    []pipeline.Step[*scope]
}

var _ reconcile.Reconciler = &Controller{}

// scope is what one reconcile knows.
type scope struct {
	pipeline.Requeue

	key types.NamespacedName
	// machine is a copy that steps change; what differs from the original in its status is written
	// at the end.
	machine *machinev1beta1.Machine
	// original is the Machine as read from the cache. Read only.
	original *machinev1beta1.Machine
	// progress is what this process remembers of the drain.
	progress *drainProgress
	// stale is set by a step that wrote the Machine itself: what this reconcile knows is then out
	// of date and is not written.
	stale bool
	// events are sent once the status is written, and only then.
	events []events.Event
	// afterWrite is called after that.
	afterWrite []func()
}

// New returns a Controller. It fails when a required option is missing. Attempts run once its pool
// is started, which SetupWithManager does.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Clientset == nil || options.Recorder == nil {
		return nil, errors.New("creating the drain controller: Client, Clientset and Recorder must all be set in its options")
	}
	options.setDefaults()
	pool := newPool(options.MaxConcurrentDrains, options.MaxWaitingDrains, options.Metrics)
	drainer := newDrainer(options.Clientset, options.AttemptTimeout)
	return &Controller{
		client:   options.Client,
		recorder: options.Recorder,
		clock:    options.Clock,
		memory:   newMemory(),
		pool:     pool,
		steps: []pipeline.Step[*scope]{
			&checkHooks{pool: pool, recorder: options.Recorder},
			&checkExempt{pool: pool, clock: options.Clock},
			&recordOutcome{pool: pool, clock: options.Clock, metrics: options.Metrics,
				backoff: backoff{options.RetryBase, options.RetryMax}},
			&checkDeadline{pool: pool, clock: options.Clock, metrics: options.Metrics, client: options.Client, drainer: drainer},
			&submitAttempt{pool: pool, clock: options.Clock, recorder: options.Recorder, drainer: drainer},
		},
	}, nil
}

// Reconcile starts, continues or ends the drain of one Machine's Node.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	machine := &machinev1beta1.Machine{}
	err := c.client.Get(ctx, request.NamespacedName, machine)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the Machine: %w", err)
	}
	if err != nil || !shouldDrain(machine) {
		c.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	s := &scope{key: request.NamespacedName, machine: machine, original: machine.DeepCopy(), progress: c.recall(machine)}
	if s.progress.replaced == machine.ResourceVersion {
		// The cache does not show the last write yet; a drain that has ended would be repeated.
		return reconcile.Result{RequeueAfter: pipeline.ConflictRetry}, nil
	}
	err = pipeline.Run(ctx, c.steps, s)
	if !s.stale {
		err = errors.Join(err, c.finish(ctx, s))
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return s.Result(), nil
}

// recall returns the progress of the Machine's drain. That of an earlier Machine of the same name
// is dropped.
func (c *Controller) recall(machine *machinev1beta1.Machine) *drainProgress {
	key := client.ObjectKeyFromObject(machine)
	if known := c.memory.find(key); known != nil && known.uid == machine.UID {
		return known
	}
	c.forget(key)
	return c.memory.begin(key, machine.UID)
}

// forget cancels the drain of a Machine.
func (c *Controller) forget(key types.NamespacedName) {
	c.pool.drop(key)
	c.memory.forget(key)
}
