package nodelink

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// Name is the controller's name in logs, metrics and events.
const Name = "nodelink"

// Options configure a Controller. Client, Reader and Recorder must be set; MaxConcurrentReconciles
// is 4 when zero. Client reads with the indexes that SetupWithManager registers.
type Options struct {
	pipeline.Common
}

// Controller reconciles Nodes with their Machines.
type Controller struct {
	client client.Client
	steps  []pipeline.Step[*scope]
}

var _ reconcile.Reconciler = &Controller{}

// scope is what one reconcile knows.
type scope struct {
	pipeline.Requeue

	// node is a copy of the Node.
	node *corev1.Node
	// machine is a copy of the Node's Machine; set by matchMachine.
	machine *machinev1beta1.Machine
	// awaitsAddress delays nodeRef, but no label, annotation or taint; set by checkAddress.
	awaitsAddress bool
}

// New returns a Controller. It fails when a required option is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Reader == nil || options.Recorder == nil {
		return nil, errors.New("creating the nodelink controller: Client, Reader and Recorder must all be set in its options")
	}
	options.SetClock()
	return &Controller{
		client: options.Client,
		steps: []pipeline.Step[*scope]{
			&matchMachine{client: options.Client, recorder: options.Recorder},
			&checkAddress{client: options.Client, clock: options.Clock},
			&setNodeRef{client: options.Client, reader: options.Reader, clock: options.Clock},
			&applyMetadata{client: options.Client, recorder: options.Recorder},
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
	// A Node that is being deleted is not updated, and the Machine keeps its nodeRef.
	if err != nil || !node.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	s := &scope{node: node}
	if err := pipeline.Run(ctx, c.steps, s); err != nil {
		return reconcile.Result{}, err
	}
	return s.Result(), nil
}
