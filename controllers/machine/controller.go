package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// Name is the controller's name in logs, metrics and events.
const Name = "machine"

// requeueInterval is the requeue delay of a Machine that waits for something without events.
const requeueInterval = 30 * time.Second

// Options configure a Controller. Client, Recorder and Actuator must be set; Reader is the Client
// when nil, MaxConcurrentReconciles is 10 when zero.
type Options struct {
	pipeline.Common

	Actuator actuators.Actuator
	// Events triggers reconciles of Machines whose run has ended; nil when the actuator needs none.
	Events <-chan event.GenericEvent
	// Metrics are new ones when nil.
	Metrics *Metrics
}

// Controller reconciles Machines.
type Controller struct {
	client   client.Client
	recorder events.Recorder
	actuator actuators.Actuator
	clock    clock.PassiveClock
	metrics  *Metrics
	writes   writes
	settled  settledMachines
	normal   []pipeline.Step[*scope]
	deleting []pipeline.Step[*scope]
}

var _ reconcile.Reconciler = &Controller{}

// scope is what one reconcile knows.
type scope struct {
	pipeline.Requeue

	// machine is a copy that steps and the actuator change; what differs from the original is
	// written at the end.
	machine *machinev1beta1.Machine
	// original is the Machine as read from the cache. Read only.
	original *machinev1beta1.Machine
	// exists is what the actuator returned, set by checkExists.
	exists bool
	// uncertain is set by checkExists when the actuator cannot say; exists is then false and has no
	// meaning.
	uncertain *actuators.UncertainError
	// stale is set by a step that wrote the Machine itself: what this reconcile knows is then out
	// of date and is not written.
	stale bool
	// settled says that the instance is as it should be and the Machine is Running.
	settled bool
	// changed says that there was something to write, whether it was written or not.
	changed bool
	// refused is set when the API server has refused a write of the Machine.
	refused error
}

// New returns a Controller. It fails when a required option is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Actuator == nil || options.Recorder == nil {
		return nil, errors.New("creating the machine controller: Client, Actuator and Recorder must all be set in its " +
			"options")
	}
	options.SetClock()
	if options.Reader == nil {
		options.Reader = options.Client
	}
	if options.Metrics == nil {
		options.Metrics = NewMetrics()
	}
	return &Controller{
		client:   options.Client,
		recorder: options.Recorder,
		actuator: options.Actuator,
		clock:    options.Clock,
		metrics:  options.Metrics,
		normal: []pipeline.Step[*scope]{
			&checkAuthority{clock: options.Clock},
			&reportHooks{clock: options.Clock},
			&validateSpec{recorder: options.Recorder, clock: options.Clock},
			&addFinalizer{client: options.Client},
			&checkFailed{},
			&checkExists{actuator: options.Actuator, clock: options.Clock},
			&reportNode{client: options.Client, recorder: options.Recorder, clock: options.Clock},
			&updateInstance{actuator: options.Actuator, clock: options.Clock},
			&createInstance{actuator: options.Actuator, clock: options.Clock},
		},
		deleting: []pipeline.Step[*scope]{
			&checkAuthority{clock: options.Clock},
			&reportHooks{clock: options.Clock},
			&refuseForeign{actuator: options.Actuator, clock: options.Clock},
			&linkNode{client: options.Client, reader: options.Reader},
			&beginDelete{},
			&waitForDrain{},
			&waitForTerminateHooks{},
			newVolumeWait(&options),
			&deleteInstance{actuator: options.Actuator, clock: options.Clock},
			&deleteNode{client: options.Client, reader: options.Reader},
			&removeFinalizer{client: options.Client},
		},
	}, nil
}

// Reconcile brings one Machine closer to its desired state.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	machine := &machinev1beta1.Machine{}
	if err := c.client.Get(ctx, request.NamespacedName, machine); err != nil {
		if client.IgnoreNotFound(err) == nil {
			c.writes.ahead(request.NamespacedName, "", c.clock.Now())
			c.settled.set(request.NamespacedName, "")
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("getting the Machine: %w", err)
	}
	if c.writes.ahead(request.NamespacedName, machine.ResourceVersion, c.clock.Now()) {
		return reconcile.Result{RequeueAfter: cacheRetry}, nil
	}
	if after, unchanged := c.unchanged(ctx, machine); unchanged {
		return timed(reconcile.Result{RequeueAfter: after}), nil
	}
	s := &scope{machine: machine, original: machine.DeepCopy()}
	steps, within := c.normal, actuators.WithHandover(ctx)
	if !machine.DeletionTimestamp.IsZero() {
		// Deletion steps check existence after they have changed it, so they must not share a
		// handover.
		steps, within = c.deleting, ctx
	}
	err := pipeline.Run(within, steps, s)
	if !s.stale {
		err = errors.Join(err, s.written(c.write(ctx, s)))
	}
	if s.refused != nil {
		writeRefused(s.original, s.refused).Send(c.recorder)
	}
	c.settled.set(request.NamespacedName, s.settledVersion())
	if err != nil {
		return reconcile.Result{}, err
	}
	return timed(s.Result()), nil
}
