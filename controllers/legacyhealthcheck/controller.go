package legacyhealthcheck

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	note "github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

const (
	// Name is the controller's name in logs, metrics and events.
	Name = "legacyhealthcheck"

	defaultConcurrency = 1
	// resync is how often the ConfigMap is read.
	resync = time.Minute
)

// Kind is the legacy kind.
var Kind = schema.GroupVersionKind{Group: "healthchecking.openshift.io", Version: "v1alpha1",
	Kind: "MachineHealthCheck"}

// Options configure a Controller.
type Options struct {
	pipeline.Common
	// Checks reads legacy MachineHealthChecks; the manager's cache by default.
	Checks client.Reader
}

// Controller converts legacy MachineHealthChecks.
type Controller struct {
	client   client.Client
	live     client.Reader
	checks   client.Reader
	recorder events.EventRecorder
}

var _ reconcile.Reconciler = &Controller{}

// SetupWithManager creates a Controller and registers it and its watch with the manager, which only
// starts if the cluster has the CRD.
func SetupWithManager(mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	if options.Checks == nil {
		options.Checks = mgr.GetCache() // the manager's client does not read unstructured objects from the cache
	}
	c := &Controller{client: options.Client, live: options.Reader, checks: options.Checks, recorder: options.Recorder}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(ofKind(Kind), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	})
}

// Reconcile converts one MachineHealthCheck.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	legacy := ofKind(Kind)
	if err := c.checks.Get(ctx, request.NamespacedName, legacy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if legacy.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	settings := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: request.Namespace, Name: conditionsName}
	if err := c.live.Get(ctx, key, settings); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading the ConfigMap %s: %w", key, err)
	}
	spec, err := convert(legacy, settings.Data[conditionsKey])
	if err == nil {
		err = c.write(ctx, legacy, spec)
	}
	switch _, refused := errors.AsType[*refusal](err); {
	case refused, apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		note.Warning(legacy, "NotConverted", "Convert", err.Error()).Send(c.recorder)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return reconcile.Result{RequeueAfter: pipeline.ConflictRetry}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("converting the MachineHealthCheck: %w", err)
	}
	return reconcile.Result{RequeueAfter: resync}, nil
}

// write creates the converted MachineHealthCheck, or changes its spec.
func (c *Controller) write(ctx context.Context, legacy *unstructured.Unstructured, spec map[string]any) error {
	found := ofKind(machinev1beta1.GroupVersion.WithKind("MachineHealthCheck"))
	err := c.live.Get(ctx, client.ObjectKeyFromObject(legacy), found)
	if apierrors.IsNotFound(err) {
		found.SetName(legacy.GetName())
		found.SetNamespace(legacy.GetNamespace())
		owner := metav1.NewControllerRef(legacy, Kind)
		owner.BlockOwnerDeletion = nil // it would need a right on the owner's finalizers
		found.SetOwnerReferences([]metav1.OwnerReference{*owner})
		found.Object["spec"] = spec
		return c.client.Create(ctx, found)
	}
	switch {
	case err != nil:
		return err
	case !metav1.IsControlledBy(found, legacy):
		return &refusal{fmt.Sprintf("the MachineHealthCheck %s of %s exists already and counts; delete one of the two",
			found.GetName(), machinev1beta1.GroupVersion)}
	case reflect.DeepEqual(found.Object["spec"], spec):
		return nil
	}
	before := found.DeepCopy()
	found.Object["spec"] = spec
	return c.client.Patch(ctx, found, pipeline.IfUnchanged(before))
}

func ofKind(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
