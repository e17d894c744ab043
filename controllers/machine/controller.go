package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// Name is the controller's name in logs, metrics and events.
const Name = "machine"

// lookAgainAfter is how soon a Machine is looked at again that waits for something that sends no event.
const lookAgainAfter = 30 * time.Second

// conflictRetry is how soon a pass is done again whose write lost to another writer.
const conflictRetry = time.Second

// Options are what a Controller works with. Client, Actuator and Recorder must be set.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client   client.Client
	Actuator actuators.Actuator
	// Recorder sends events.
	Recorder events.EventRecorder
	// Events wakes Machines whose run has ended; nil when the actuator needs no waking.
	Events <-chan event.GenericEvent
	// Clock tells the time; the real one when nil.
	Clock clock.PassiveClock
	// Metrics are observed; new ones when nil.
	Metrics *Metrics
	// MaxConcurrentReconciles is how many Machines are worked on at a time; 10 when zero.
	MaxConcurrentReconciles int
}

// Controller reconciles Machines.
type Controller struct {
	client   client.Client
	clock    clock.PassiveClock
	metrics  *Metrics
	living   []step
	deleting []step
}

var _ reconcile.Reconciler = &Controller{}

// step is one part of a reconcile.
type step interface {
	// Reconcile does its part. It answers false when no later step may run in this pass.
	Reconcile(ctx context.Context, s *scope) (bool, error)
}

// scope is what one reconcile knows.
type scope struct {
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
	// requeueAfter is when to look again without an event; zero for never.
	requeueAfter time.Duration
}

// New makes a Controller. It fails when an option that must be set is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Actuator == nil || options.Recorder == nil {
		return nil, errors.New("making the machine controller: Client, Actuator and Recorder must all be set in its options")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Metrics == nil {
		options.Metrics = NewMetrics()
	}
	return &Controller{
		client:  options.Client,
		clock:   options.Clock,
		metrics: options.Metrics,
		living: []step{
			&authority{clock: options.Clock},
			&hooks{clock: options.Clock},
			&validation{recorder: options.Recorder},
			&finalizer{client: options.Client},
			&failure{},
			&existence{actuator: options.Actuator, clock: options.Clock},
			&upkeep{actuator: options.Actuator, clock: options.Clock},
			&provisioning{actuator: options.Actuator, clock: options.Clock},
		},
		deleting: []step{
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
	err := run(ctx, steps, s)
	if !s.overtaken {
		err = errors.Join(err, s.outcome(c.write(ctx, s)))
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: s.requeueAfter}, nil
}

// run runs the steps until one has failed or has ended the pass.
func run(ctx context.Context, steps []step, s *scope) error {
	for _, step := range steps {
		if goOn, err := step.Reconcile(ctx, s); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// outcome takes what a write of the Machine answered. That the Machine is gone is no error. Neither is that another has written
// since the cache saw it: the pass is done again.
func (s *scope) outcome(err error) error {
	if apierrors.IsConflict(err) {
		s.lookAgain(conflictRetry)
		return nil
	}
	return client.IgnoreNotFound(err)
}

// lookAgain asks for a reconcile in after, or sooner.
func (s *scope) lookAgain(after time.Duration) {
	if after > 0 && (s.requeueAfter == 0 || after < s.requeueAfter) {
		s.requeueAfter = after
	}
}
