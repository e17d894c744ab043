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
)

// Name is the controller's name in logs, metrics and events.
const Name = "machine"

// lookAgainAfter is how soon a Machine is looked at again that waits for something that sends no event.
const lookAgainAfter = 30 * time.Second

// Options are what a Controller works with. Client, Recorder and Actuator must be set; MaxConcurrentReconciles is 10 when zero.
type Options struct {
	pipeline.Common

	Actuator actuators.Actuator
	// Events wakes Machines whose run has ended; nil when the actuator needs no waking.
	Events <-chan event.GenericEvent
	// Metrics are observed; new ones when nil.
	Metrics *Metrics
}

// Controller reconciles Machines.
type Controller struct {
	client   client.Client
	clock    clock.PassiveClock
	metrics  *Metrics
	living   []pipeline.Step[*scope]
	deleting []pipeline.Step[*scope]
}

var _ reconcile.Reconciler = &Controller{}

// scope is what one reconcile knows.
type scope struct {
	pipeline.Requeue

	// machine is a copy that steps and the actuator change; what differs from the original is written at the end.
	machine *machinev1beta1.Machine
	// original is the Machine as the cache had it. Read only.
	original *machinev1beta1.Machine
	// exists is what the actuator answered, set by existence.
	exists bool
	// uncertain is set by existence where the actuator cannot tell; exists is false then, and means nothing.
	uncertain *actuators.UncertainError
	// overtaken is set by a step that wrote the Machine itself: what the pass knows of it is the past then, and is not written.
	overtaken bool
}

// New makes a Controller. It fails when an option that must be set is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Actuator == nil || options.Recorder == nil {
		return nil, errors.New("creating the machine controller: Client, Actuator and Recorder must all be set in its options")
	}
	options.SetClock()
	if options.Metrics == nil {
		options.Metrics = NewMetrics()
	}
	return &Controller{
		client:  options.Client,
		clock:   options.Clock,
		metrics: options.Metrics,
		living: []pipeline.Step[*scope]{
			&authority{clock: options.Clock},
			&hooks{clock: options.Clock},
			&validation{recorder: options.Recorder},
			&finalizer{client: options.Client},
			&failure{},
			&existence{actuator: options.Actuator, clock: options.Clock},
			&upkeep{actuator: options.Actuator, clock: options.Clock},
			&provisioning{actuator: options.Actuator, clock: options.Clock},
		},
		deleting: []pipeline.Step[*scope]{
			&authority{clock: options.Clock},
			&hooks{clock: options.Clock},
			&farewell{},
			&drained{},
			&terminateHook{},
			&destruction{actuator: options.Actuator, clock: options.Clock},
			&nodeRemoval{client: options.Client},
			&release{client: options.Client},
		},
	}, nil
}

// Reconcile moves one Machine on.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	machine := &machinev1beta1.Machine{}
	if err := c.client.Get(ctx, request.NamespacedName, machine); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("getting the Machine: %w", err)
	}
	s := &scope{machine: machine, original: machine.DeepCopy()}
	steps := c.living
	if !machine.DeletionTimestamp.IsZero() {
		steps = c.deleting
	}
	err := pipeline.Run(ctx, steps, s)
	if !s.overtaken {
		err = errors.Join(err, s.Written(c.write(ctx, s)))
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return s.Result(), nil
}
