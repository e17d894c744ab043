package nodelink

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Name is the controller's name in logs, metrics and events.
const Name = "nodelink"

// conflictRetry is how soon a write that lost to another writer is tried again.
const conflictRetry = time.Second

// Options are what a Controller works with. Client and Recorder must be set.
type Options struct {
	// Client reads from the cache, with the indexes that SetupWithManager registers, and writes to the API server.
	Client client.Client
	// Recorder sends events.
	Recorder events.EventRecorder
	// Clock tells the time; the real one when nil.
	Clock clock.PassiveClock
	// MaxConcurrentReconciles is how many Nodes are worked on at a time; 4 when zero.
	MaxConcurrentReconciles int
}

// Controller reconciles Nodes with their Machines.
type Controller struct {
	client client.Client
	steps  []step
}

var _ reconcile.Reconciler = &Controller{}

// step is one part of a reconcile.
type step interface {
	// Reconcile does its part. It answers false when no later step may run in this pass.
	Reconcile(ctx context.Context, s *scope) (bool, error)
}

// scope is what one reconcile knows.
type scope struct {
	// node is a copy of the Node.
	node *corev1.Node
	// machine is a copy of the Machine that the Node runs on; set by matching.
	machine *machinev1beta1.Machine
	// requeueAfter is when to look again without an event; zero for never.
	requeueAfter time.Duration
}

// New makes a Controller. It fails when an option that must be set is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Recorder == nil {
		return nil, errors.New("making the nodelink controller: Client and Recorder must be set in its options")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Controller{
		client: options.Client,
		steps: []step{
			&matching{client: options.Client, recorder: options.Recorder},
			&reference{client: options.Client, clock: options.Clock},
			&imprint{client: options.Client, recorder: options.Recorder},
		},
	}, nil
}

// Reconcile links one Node.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	err := c.client.Get(ctx, request.NamespacedName, node)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the Node: %w", err)
	}
	// A Node that goes gets nothing, and the Machine keeps its reference as a trace of it.
	if err != nil || !node.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	s := &scope{node: node}
	for _, step := range c.steps {
		if goOn, err := step.Reconcile(ctx, s); err != nil {
			return reconcile.Result{}, err
		} else if !goOn {
			break
		}
	}
	return reconcile.Result{RequeueAfter: s.requeueAfter}, nil
}
