package machineset

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// Name is the controller's name in logs, metrics and events.
const Name = "machineset"

// defaultInFlightTimeout is how long to wait for the cache to show a created or deleted Machine
// before the API server is read. A cache lags by milliseconds, or its watch is broken.
const defaultInFlightTimeout = 15 * time.Second

// Options configure a Controller. Client, Reader and Recorder must be set; MaxConcurrentReconciles
// is 4 when zero.
type Options struct {
	pipeline.Common

	// Shuffle shuffles the candidates for deletion under the policy Random; math/rand's when nil.
	Shuffle func(n int, swap func(i, j int))
	// InFlightTimeout is how long to wait for the cache to show a created or deleted Machine before
	// the API server is read; 15 s when zero.
	InFlightTimeout time.Duration
	// Overshoot is how many Machines beyond twice its replicas a MachineSet may have before it creates
	// no more.
	Overshoot int
}

// Controller reconciles MachineSets.
type Controller struct {
	client   client.Client
	recorder events.EventRecorder
	inFlight *inFlight
	pace     *pipeline.Pace
	steps    []pipeline.Step[*scope]
}

var _ reconcile.Reconciler = &Controller{}

// scope is what one reconcile knows.
type scope struct {
	pipeline.Requeue

	// set is a copy of the MachineSet. Steps change nothing but its status.
	set *machinev1beta1.MachineSet
	// selector is set by validateSpec, and is not empty.
	selector labels.Selector
	// machines are all Machines of the namespace as the cache has them, set by claimMachines. They
	// belong to the cache: read only.
	machines []*machinev1beta1.Machine
	// replicas are the Machines that count, set by claimMachines, and by readLive to those of the
	// API server. Read only.
	replicas []*machinev1beta1.Machine
	// room is how many Machines may be created, set by limitCreation.
	room int
	// stale is set by claimMachines when a Machine has changed since it was read from the cache, so
	// that replicas may be wrong.
	stale bool
}

// surplus returns how many replicas are too many; negative when some are missing.
func (s *scope) surplus() int {
	return len(s.replicas) - int(*s.set.Spec.Replicas) - v1beta1.SurgeOf(s.set)
}

// New returns a Controller. It fails when a required option is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Reader == nil || options.Recorder == nil {
		return nil, errors.New("creating the machineset controller: Client, Reader and Recorder must all be set in its " +
			"options")
	}
	options.SetClock()
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
		pace:     pipeline.NewPace(options.Clock),
		steps: []pipeline.Step[*scope]{
			&checkAuthority{clock: options.Clock},
			&validateSpec{},
			&claimMachines{client: options.Client, reader: options.Reader},
			&summarizeReplicas{client: options.Client, clock: options.Clock},
			&compareTemplate{clock: options.Clock},
			&explainHold{clock: options.Clock},
			&limitCreation{recorder: options.Recorder, clock: options.Clock, overshoot: options.Overshoot},
			&readLive{reader: options.Reader, inFlight: flight},
			&createMachines{client: options.Client, inFlight: flight},
			&deleteMachines{client: options.Client, inFlight: flight, clock: options.Clock, shuffle: options.Shuffle},
		},
	}, nil
}

// Reconcile creates or deletes Machines of one MachineSet, and updates its status.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &machinev1beta1.MachineSet{}
	err := c.client.Get(ctx, request.NamespacedName, set)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the MachineSet: %w", err)
	}
	// The garbage collector deletes the Machines of a deleted MachineSet.
	if err != nil || !set.DeletionTimestamp.IsZero() {
		c.inFlight.forget(request.NamespacedName)
		c.pace.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if wait := c.pace.Wait(request.NamespacedName); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}

	s := &scope{set: set}
	before := set.DeepCopy()
	err = pipeline.Run(ctx, c.steps, s)
	err = errors.Join(err, s.Written(c.patchStatus(ctx, before, set)))
	if err != nil {
		if ctx.Err() == nil { // otherwise the manager is stopping
			reconcileError(set, err).Send(c.recorder)
		}
		return reconcile.Result{}, err
	}
	c.pace.Reconciled(request.NamespacedName, len(s.machines))
	return s.Result(), nil
}
