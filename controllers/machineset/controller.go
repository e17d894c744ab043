package machineset

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Name is the controller's name in logs, metrics and events.
const Name = "machineset"

// defaultInFlightTimeout is how long the cache may take to show a Machine that was created or deleted before the API server is
// asked. A cache lags by milliseconds, or its watch is broken.
const defaultInFlightTimeout = 15 * time.Second

// conflictRetry is how soon a status write that lost to another writer is tried again.
const conflictRetry = time.Second

// Options are what a Controller works with. Client, Reader and Recorder must be set.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Reader reads from the API server.
	Reader client.Reader
	// Recorder sends events.
	Recorder events.EventRecorder
	// Clock tells the time; the real one when nil.
	Clock clock.PassiveClock
	// Shuffle mixes the candidates for deletion under the policy Random; math/rand's when nil.
	Shuffle func(n int, swap func(i, j int))
	// InFlightTimeout is how long the cache may take to show a Machine that was created or deleted before the API server is
	// asked; 15 s when zero.
	InFlightTimeout time.Duration
	// MaxConcurrentReconciles is how many MachineSets are worked on at a time; 4 when zero.
	MaxConcurrentReconciles int
}

// Controller reconciles MachineSets.
type Controller struct {
	client   client.Client
	recorder events.EventRecorder
	inFlight *inFlight
	steps    []step
}

var _ reconcile.Reconciler = &Controller{}

// step is one part of a reconcile.
type step interface {
	// Reconcile does its part. It answers false when no later step may run in this pass.
	Reconcile(ctx context.Context, s *scope) (bool, error)
}

// scope is what one reconcile knows.
type scope struct {
	// set is a copy of the MachineSet. Steps change nothing but its status.
	set *machinev1beta1.MachineSet
	// selector is set by validation; never empty from then on.
	selector labels.Selector
	// machines are all Machines of the namespace as the cache has them, set by claim. They belong to the cache: read only.
	machines []*machinev1beta1.Machine
	// replicas are those Machines that count, set by claim. Read only.
	replicas []*machinev1beta1.Machine
	// overtaken is set by claim when a Machine has changed since the cache saw it, so that replicas may be wrong.
	overtaken bool
	// requeueAfter is when to look again without an event; zero for never.
	requeueAfter time.Duration
}

// surplus is how many replicas there are too many; negative when some are missing.
func (s *scope) surplus() int {
	return len(s.replicas) - int(*s.set.Spec.Replicas)
}

// lookAgain asks for a reconcile in after, or sooner.
func (s *scope) lookAgain(after time.Duration) {
	if after > 0 && (s.requeueAfter == 0 || after < s.requeueAfter) {
		s.requeueAfter = after
	}
}

// New makes a Controller. It fails when an option that must be set is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Reader == nil || options.Recorder == nil {
		return nil, errors.New("making the machineset controller: Client, Reader and Recorder must all be set in its options")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Shuffle == nil {
		options.Shuffle = rand.Shuffle
	}
	if options.InFlightTimeout == 0 {
		options.InFlightTimeout = defaultInFlightTimeout
	}
	flight := newInFlight(options.Clock, options.InFlightTimeout)
	return &Controller{
		client:   options.Client,
		recorder: options.Recorder,
		inFlight: flight,
		steps: []step{
			&authority{clock: options.Clock},
			&validation{},
			&claim{client: options.Client, reader: options.Reader},
			&observation{client: options.Client, clock: options.Clock},
			&settling{reader: options.Reader, inFlight: flight},
			&creation{client: options.Client, inFlight: flight},
			&deletion{client: options.Client, inFlight: flight, clock: options.Clock, shuffle: options.Shuffle},
		},
	}, nil
}

// Reconcile moves one MachineSet on.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &machinev1beta1.MachineSet{}
	err := c.client.Get(ctx, request.NamespacedName, set)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the MachineSet: %w", err)
	}
	// The Machines of a MachineSet that goes are the garbage collector's business.
	if err != nil || !set.DeletionTimestamp.IsZero() {
		c.inFlight.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}

	s := &scope{set: set}
	before := set.DeepCopy()
	err = c.run(ctx, s)
	switch patchErr := c.patchStatus(ctx, before, set); {
	case apierrors.IsConflict(patchErr):
		s.lookAgain(conflictRetry)
	default:
		err = errors.Join(err, client.IgnoreNotFound(patchErr))
	}
	if err != nil {
		if ctx.Err() == nil { // a manager that stops is no error of the MachineSet
			reconcileError(set, err).Send(c.recorder)
		}
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: s.requeueAfter}, nil
}

// run runs the steps until one has failed or has ended the pass.
func (c *Controller) run(ctx context.Context, s *scope) error {
	for _, step := range c.steps {
		if goOn, err := step.Reconcile(ctx, s); err != nil || !goOn {
			return err
		}
	}
	return nil
}
