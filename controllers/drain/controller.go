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
	// askAgainAfter is how soon is asked again for what another Machine must give up first: the turn of a control-plane Node, or
	// room in the line. A Node that could not be cordoned is tried again after the same time.
	askAgainAfter = 20 * time.Second
)

// Options are what a Controller works with. Client, Recorder and Clientset must be set; zero values of the rest take the defaults
// named, MaxConcurrentReconciles 4. No reconcile waits for a pass.
type Options struct {
	pipeline.Common

	// Clientset reads Nodes and pods as they are now, cordons and evicts. Nodes with many pods make many requests; with limits of
	// its own it slows nobody down.
	Clientset kubernetes.Interface
	// Metrics are observed; new ones when nil.
	Metrics *Metrics
	// MaxConcurrentDrains is how many passes run at a time; default 10.
	MaxConcurrentDrains int
	// MaxWaitingDrains bounds the passes that wait for their turn; default 1000. A Machine beyond that asks again later.
	MaxWaitingDrains int
	// PassTimeout bounds one pass; default 20 seconds.
	PassTimeout time.Duration
	// RetryBase is the pause after a pass that left pods, doubled with every further one up to RetryMax; defaults 5 seconds and
	// 2 minutes. The Machine API Operator goes up to 1000 seconds: an eviction that has become possible should not wait a quarter
	// of an hour for somebody to try.
	RetryBase, RetryMax time.Duration
}

func (o *Options) setDefaults() {
	setDefault(&o.MaxConcurrentDrains, 10)
	setDefault(&o.MaxWaitingDrains, 1000)
	setDefault(&o.PassTimeout, 20*time.Second)
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

// Controller reconciles Machines that are being deleted.
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
	// machine is a copy that steps change; what differs from the original in its status is written at the end.
	machine *machinev1beta1.Machine
	// original is the Machine as the cache had it. Read only.
	original *machinev1beta1.Machine
	// record is what this process remembers of the drain.
	record *record
	// overtaken is set by a step that wrote the Machine itself: what the pass knows of it is the past then, and is not written.
	overtaken bool
	// notices are sent once the status is written, and not when it is not.
	notices []events.Event
	// settled is done after that.
	settled []func()
}

// New makes a Controller. It fails when an option that must be set is missing. Passes run once its pool is started, which
// SetupWithManager sees to.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Clientset == nil || options.Recorder == nil {
		return nil, errors.New("creating the drain controller: Client, Clientset and Recorder must all be set in its options")
	}
	options.setDefaults()
	pool := newPool(options.MaxConcurrentDrains, options.MaxWaitingDrains, options.Metrics)
	drainer := newDrainer(options.Clientset, options.PassTimeout)
	return &Controller{
		client:   options.Client,
		recorder: options.Recorder,
		clock:    options.Clock,
		memory:   newMemory(),
		pool:     pool,
		steps: []pipeline.Step[*scope]{
			&hook{pool: pool, recorder: options.Recorder},
			&exemption{pool: pool, clock: options.Clock},
			&conclusion{pool: pool, clock: options.Clock, metrics: options.Metrics, pauses: pauses{options.RetryBase, options.RetryMax}},
			&deadline{pool: pool, clock: options.Clock, metrics: options.Metrics, client: options.Client, drainer: drainer},
			&submission{pool: pool, clock: options.Clock, recorder: options.Recorder, drainer: drainer},
		},
	}, nil
}

// Reconcile moves the drain of one Machine on.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	machine := &machinev1beta1.Machine{}
	err := c.client.Get(ctx, request.NamespacedName, machine)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the Machine: %w", err)
	}
	if err != nil || !toBeDrained(machine) {
		c.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	s := &scope{key: request.NamespacedName, machine: machine, original: machine.DeepCopy(), record: c.recall(machine)}
	if s.record.replaced == machine.ResourceVersion {
		// The cache has yet to see what was written; a drain that has ended would begin anew.
		return reconcile.Result{RequeueAfter: pipeline.ConflictRetry}, nil
	}
	err = pipeline.Run(ctx, c.steps, s)
	if !s.overtaken {
		err = errors.Join(err, c.finish(ctx, s))
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return s.Result(), nil
}

// recall answers what is remembered of the Machine's drain. What is remembered of another Machine of its name is forgotten.
func (c *Controller) recall(machine *machinev1beta1.Machine) *record {
	key := client.ObjectKeyFromObject(machine)
	if known := c.memory.find(key); known != nil && known.uid == machine.UID {
		return known
	}
	c.forget(key)
	return c.memory.begin(key, machine.UID)
}

// forget ends what goes on for a Machine.
func (c *Controller) forget(key types.NamespacedName) {
	c.pool.drop(key)
	c.memory.forget(key)
}
