package machineclass

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// Name is the controller's name in logs, metrics and events.
	Name = "machineclass"

	// provider is the provider of classes whose providerSpec belongs to this operator.
	provider = "machine-iac"
)

// kind is read unstructured, because Gardener's module is not a dependency.
var kind = schema.GroupVersionKind{Group: "machine.sapcloud.io", Version: "v1alpha1", Kind: "MachineClass"}

// Options configure a Controller. Client, Recorder and Estimator must be set;
// MaxConcurrentReconciles is 1 when zero.
type Options struct {
	pipeline.Common

	// Estimator returns the capacity of an instance.
	Estimator actuators.CapacityEstimator
}

// Controller completes MachineClasses.
type Controller struct {
	client    client.Client
	estimator actuators.CapacityEstimator
	recorder  events.EventRecorder
}

var _ reconcile.Reconciler = &Controller{}

// New returns a Controller. It fails when a required option is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Estimator == nil || options.Recorder == nil {
		return nil, errors.New("creating the machineclass controller: Client, Estimator and Recorder must all be set in " +
			"its options")
	}
	return &Controller{client: options.Client, estimator: options.Estimator, recorder: options.Recorder}, nil
}

// Reconcile completes the nodeTemplate of one class.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := newClass()
	if err := c.client.Get(ctx, request.NamespacedName, class); err != nil {
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("getting the MachineClass: %w", err)
	}
	if of, _, _ := unstructured.NestedString(class.Object, "provider"); of != provider ||
		class.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	machine, err := machineFrom(class)
	if err != nil {
		return reconcile.Result{}, err
	}
	size, err := c.estimator.Capacity(ctx, machine)
	if waiting, ok := actuators.AsRequeueAfter(err); ok {
		return reconcile.Result{RequeueAfter: waiting.After}, nil
	}
	if unknown, ok := errors.AsType[*actuators.UnknownInstanceTypeError](err); ok {
		sizeUnknown(class, err).Send(c.recorder)
		return reconcile.Result{RequeueAfter: unknown.RetryAfter}, nil
	}
	switch {
	case actuators.IsInvalidConfiguration(err): // not retried until the class or the provider changes
		sizeUnknown(class, err).Send(c.recorder)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("estimating the capacity of a Machine of the class: %w", err)
	case size == nil:
		return reconcile.Result{}, nil
	}
	return c.write(ctx, class, *size)
}

func newClass() *unstructured.Unstructured {
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(kind)
	return class
}

// machineFrom returns the Machine that the driver would create from a class. It is never created,
// so it has no name.
func machineFrom(class *unstructured.Unstructured) (*machinev1beta1.Machine, error) {
	spec, _, err := unstructured.NestedMap(class.Object, "providerSpec") // a copy
	if err != nil {
		return nil, fmt.Errorf("reading the providerSpec of the class: %w", err)
	}
	nameSecrets(class, spec)
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the providerSpec of the class: %w", err)
	}
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: class.GetNamespace(),
		Labels:    map[string]string{machinev1beta1.MachineClusterIDLabel: class.GetNamespace()},
	}}
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return machine, nil
}

// nameSecrets adds the Secrets that the driver adds to a providerSpec, because modules may require
// them. They are not read for a size.
func nameSecrets(class *unstructured.Unstructured, spec map[string]any) {
	secret, _, _ := unstructured.NestedString(class.Object, "credentialsSecretRef", "name")
	if secret == "" {
		secret, _, _ = unstructured.NestedString(class.Object, "secretRef", "name")
	}
	if secret == "" || spec == nil {
		return
	}
	credentials := "credentialsSecret"
	if of, _ := spec["kind"].(string); strings.EqualFold(of, "OpenstackProviderSpec") {
		credentials = "cloudsSecret"
	}
	for _, name := range []string{credentials, "userDataSecret"} {
		if _, given := spec[name]; !given {
			spec[name] = map[string]any{"name": secret}
		}
	}
}

// write patches the class if its nodeTemplate is incomplete, unless the class has changed since it
// was read.
func (c *Controller) write(ctx context.Context, class *unstructured.Unstructured,
	size actuators.Capacity) (reconcile.Result, error) {
	completed, missing, err := complete(class, size)
	switch {
	case err != nil:
		unreadable(class, err).Send(c.recorder)
		return reconcile.Result{}, nil
	case len(missing) > 0:
		incomplete(class, missing).Send(c.recorder)
		return reconcile.Result{}, nil
	case completed == nil:
		return reconcile.Result{}, nil
	}
	err = c.client.Patch(ctx, completed, pipeline.IfUnchanged(class))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: pipeline.ConflictRetry}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("writing the nodeTemplate of the MachineClass: %w", err)
	}
	return reconcile.Result{}, nil
}
