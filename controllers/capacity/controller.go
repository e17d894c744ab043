package capacity

import (
	"context"
	"errors"
	"fmt"
	"maps"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// Name is the controller's name in logs, metrics and events.
const Name = "capacity"

// Options configure a Controller. Client, Recorder and Estimator are required;
// MaxConcurrentReconciles defaults to 2.
type Options struct {
	pipeline.Common

	// Estimator returns the capacity of an instance.
	Estimator actuators.CapacityEstimator
}

// Controller annotates MachineSets.
type Controller struct {
	client    client.Client
	estimator actuators.CapacityEstimator
	recorder  events.EventRecorder
}

var _ reconcile.Reconciler = &Controller{}

// New returns a Controller. It fails when a required option is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Estimator == nil || options.Recorder == nil {
		return nil, errors.New("creating the capacity controller: Client, Estimator and Recorder must all be set in its " +
			"options")
	}
	return &Controller{client: options.Client, estimator: options.Estimator, recorder: options.Recorder}, nil
}

// Reconcile updates the annotations of one MachineSet.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &machinev1beta1.MachineSet{}
	if err := c.client.Get(ctx, request.NamespacedName, set); err != nil {
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("getting the MachineSet: %w", err)
	}
	if !set.DeletionTimestamp.IsZero() || !machineapi.AuthorityOfMachineSet(set).IsMachineAPI() {
		return reconcile.Result{}, nil
	}
	size, err := c.estimator.Capacity(ctx, machineFrom(set))
	if waiting, ok := actuators.AsRequeueAfter(err); ok {
		return reconcile.Result{RequeueAfter: waiting.After}, nil
	}
	if unknown, ok := errors.AsType[*actuators.UnknownInstanceTypeError](err); ok {
		unknownInstanceType(set, err).Send(c.recorder)
		return reconcile.Result{RequeueAfter: unknown.RetryAfter}, nil
	}
	switch {
	case actuators.IsInvalidConfiguration(err): // not retried until the MachineSet changes
		invalidProviderSpec(set, err).Send(c.recorder)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("estimating the capacity of a Machine of the MachineSet: %w", err)
	case size == nil:
		return reconcile.Result{}, nil
	}
	return c.write(ctx, set, *size)
}

// machineFrom returns a Machine from the MachineSet's template. It is never created, so it has no
// name.
func machineFrom(set *machinev1beta1.MachineSet) *machinev1beta1.Machine {
	template := set.Spec.Template.DeepCopy()
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
}

// write patches the annotations if they differ, unless the MachineSet has changed since it was
// read: others also write some of them.
func (c *Controller) write(ctx context.Context, set *machinev1beta1.MachineSet,
	size actuators.Capacity) (reconcile.Result, error) {
	wanted := annotate(set.Annotations, size, &set.Spec.Template.Spec)
	if maps.Equal(wanted, set.Annotations) {
		return reconcile.Result{}, nil
	}
	before := set.DeepCopy()
	set.Annotations = wanted
	err := c.client.Patch(ctx, set, pipeline.IfUnchanged(before))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: pipeline.ConflictRetry}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("writing the capacity annotations of the MachineSet: %w", err)
	}
	return reconcile.Result{}, nil
}
