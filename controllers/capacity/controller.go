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

// Options are what a Controller works with. Client, Recorder and Estimator must be set; MaxConcurrentReconciles is 2 when zero.
type Options struct {
	pipeline.Common

	// Estimator knows how large an instance is.
	Estimator actuators.CapacityEstimator
}

// Controller annotates MachineSets.
type Controller struct {
	client    client.Client
	estimator actuators.CapacityEstimator
	recorder  events.EventRecorder
}

var _ reconcile.Reconciler = &Controller{}

// New makes a Controller. It fails when an option that must be set is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Estimator == nil || options.Recorder == nil {
		return nil, errors.New("creating the capacity controller: Client, Estimator and Recorder must all be set in its options")
	}
	return &Controller{client: options.Client, estimator: options.Estimator, recorder: options.Recorder}, nil
}

// Reconcile brings the annotations of one MachineSet up to date.
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
	size, err := c.estimator.Capacity(ctx, firstOf(set))
	switch {
	case actuators.IsUnknownInstanceType(err): // only a change of the MachineSet or of the provider helps
		unknownType(set, err).Send(c.recorder)
		return reconcile.Result{}, nil
	case actuators.IsInvalidConfiguration(err): // only a change of the MachineSet helps
		badProviderSpec(set, err).Send(c.recorder)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("estimating the capacity of a Machine of the MachineSet: %w", err)
	case size == nil:
		return reconcile.Result{}, nil
	}
	return c.write(ctx, set, *size)
}

// firstOf answers a Machine as the template describes it. It has no name: nobody makes it.
func firstOf(set *machinev1beta1.MachineSet) *machinev1beta1.Machine {
	template := set.Spec.Template.DeepCopy()
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
}

// write patches the annotations where they differ. The patch holds only for the MachineSet that was read: the labels annotation is
// shared with others.
func (c *Controller) write(ctx context.Context, set *machinev1beta1.MachineSet, size actuators.Capacity) (reconcile.Result, error) {
	wanted := annotate(set.Annotations, size)
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
