// Package operator keeps the controllers installed: it applies what they need, reverts changes by
// others, and reports the state of the installation.
//
// It needs the permissions in install/kubernetes/operator.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// resync is how often everything is checked without an event. The deletion of a CRD causes none.
const resync = time.Minute

// AllowDowngrade is an annotation of the controllers' Deployment with the version of an older
// operator that may take over.
const AllowDowngrade = "machine-iac.io/allow-downgrade"

// Options configure the operator.
type Options struct {
	// Namespace is the operator's own.
	Namespace string
	// Version is that of the operator.
	Version string
	// Image is that of the controllers; that of the Pod PodName when empty.
	Image   string
	PodName string
	// Manifests are those of the operands.
	Manifests fs.FS
	// Manager is the controllers' program, which validates the flags of the settings; not validated
	// when empty.
	Manager string
	// Live reads what is read at each sync, without a cache; Cached has the operands.
	Live   client.Client
	Cached client.Reader
	// TLS is what the operator's own server accepts since it started. Restart is called when the
	// cluster's profile is another one.
	TLS     operands.TLS
	Restart func()
	// Recorder sends events about the controllers' Deployment.
	Recorder events.EventRecorder
	// Clock is replaced by tests.
	Clock clock.PassiveClock
}

// Reconciler keeps the installation.
type Reconciler struct {
	options Options
	// valid are the last flags that the manager took.
	valid  []string
	live   client.Client
	status *reporter
	clock  clock.PassiveClock
	// outdated means that the operator's own server does not follow the cluster's TLS profile.
	outdated bool
	// unconfined is the flag that allows engines to run unconfined, as last read.
	unconfined string
	// reverted is what somebody else had changed at the last sync, and who.
	reverted string
}

var _ reconcile.Reconciler = &Reconciler{}

// New returns a reconciler.
func New(o Options) *Reconciler {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Reconciler{
		options: o, live: o.Live, clock: o.Clock,
		status: &reporter{client: o.Live, namespace: o.Namespace, version: o.Version, recorder: o.Recorder, clock: o.Clock},
	}
}

// Reconcile brings the installation to the desired state. The request is ignored, since there is
// only one installation.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := r.status.read(ctx); err != nil {
		return reconcile.Result{}, err
	}
	r.reverted = ""
	wait, err := r.sync(ctx)
	if reporting := r.status.write(ctx, outcome{rolledOut: wait == 0 && err == nil, failure: err,
		unconfined: r.unconfined, reverted: r.reverted}); reporting != nil {
		return reconcile.Result{}, errors.Join(err, reporting)
	}
	if r.outdated && r.options.Restart != nil {
		r.options.Restart()
	}
	_, missing := errors.AsType[*missingCRDsError](err)
	_, crashes := errors.AsType[*crashError](err)
	if missing || crashes {
		log.FromContext(ctx).Error(err, "Cannot install everything")
		return reconcile.Result{RequeueAfter: cmp.Or(wait, resync)}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: cmp.Or(wait, resync)}, nil
}

// sync applies everything. It returns when to requeue because something has not rolled out yet, or
// zero.
func (r *Reconciler) sync(ctx context.Context) (time.Duration, error) {
	in, err := r.inputs(ctx)
	if err != nil {
		return 0, err
	}
	r.unconfined = unconfined(in.Arguments)
	r.outdated = !equality.Semantic.DeepEqual(in.TLS, r.options.TLS)
	if err := r.allowed(ctx); err != nil {
		return 0, err
	}
	objects, err := operands.Render(r.options.Manifests, in)
	if err != nil {
		return 0, err
	}
	r.status.relate(objects)
	applied, err := r.apply(ctx, objects)
	missing := r.served(ctx)
	if missing == nil && apierrors.IsConflict(err) {
		return rolloutInterval / 5, nil // another writer is active
	}
	if err := errors.Join(missing, err); err != nil {
		return 0, err
	}
	if err := r.remove(ctx, in); err != nil {
		return 0, err
	}
	return r.rollout(ctx, applied)
}

// served returns an error if a CRD of the Machine API was deleted. The operator cannot restore it: it has no right to
// write CRDs.
func (r *Reconciler) served(ctx context.Context) error {
	var missing []string
	for _, kind := range []string{"Machine", "MachineSet", "MachineHealthCheck"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(kind + "List"))
		err := r.live.List(ctx, list, client.InNamespace(r.options.Namespace), client.Limit(1))
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			missing = append(missing, strings.ToLower(kind)+"s."+machinev1beta1.GroupName)
		case err != nil:
			return fmt.Errorf("listing objects of kind %s: %w", kind, err)
		}
	}
	if len(missing) > 0 {
		return &missingCRDsError{missing}
	}
	return nil
}

// allowed returns an error if a newer operator has applied the operands.
func (r *Reconciler) allowed(ctx context.Context) error {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion("apps/v1")
	found.SetKind("Deployment")
	if there, err := r.read(ctx, r.own(operands.Deployment), found); err != nil || !there {
		return err
	}
	annotations := found.GetAnnotations()
	recorded, err := version.ParseSemantic(annotations[operands.VersionAnnotation])
	if err != nil {
		return nil //nolint:nilerr // there is no earlier release, or one from a development build
	}
	own, err := version.ParseSemantic(r.options.Version)
	if err != nil || !own.LessThan(recorded) || annotations[AllowDowngrade] == r.options.Version {
		return nil //nolint:nilerr // a development build is compared with nothing
	}
	return &downgradeError{fmt.Sprintf("%s was applied by operator %s, which is newer than this one, %s; install that "+
		"version again, or, if this one reads its states, annotate the Deployment with %s=%s",
		nameOf(found), recorded, own, AllowDowngrade, r.options.Version)}
}

// apply applies all objects and returns the results. It joins the errors.
func (r *Reconciler) apply(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured,
	error) {
	var applied []*unstructured.Unstructured
	var failed []error
	for _, one := range objects {
		before := &unstructured.Unstructured{}
		before.SetGroupVersionKind(one.GroupVersionKind())
		err := r.reader(one).Get(ctx, client.ObjectKeyFromObject(one), before)
		if apierrors.IsNotFound(err) {
			before = nil
		} else if err != nil {
			return nil, fmt.Errorf("reading %s: %w", nameOf(one), err)
		}
		live, err := applier{r.live, r.reverts}.apply(ctx, one, before)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if before == nil || before.GetResourceVersion() != live.GetResourceVersion() {
			log.FromContext(ctx).Info("Applied", "object", nameOf(one), "new", before == nil)
			operandWrites.WithLabelValues(one.GetKind()).Inc()
		}
		applied = append(applied, live)
	}
	if len(failed) == 1 {
		return applied, failed[0]
	}
	return applied, errors.Join(failed...)
}

// reverts takes down who has changed an object.
func (r *Reconciler) reverts(object *unstructured.Unstructured, by []string) {
	r.reverted = fmt.Sprintf("%s (field manager %s)", nameOf(object), strings.Join(by, ", "))
}

// reader returns the client to read an operand with. ConfigMaps are not cached: clusters have many
// large ones.
func (r *Reconciler) reader(object *unstructured.Unstructured) client.Reader {
	if object.GetKind() == "ConfigMap" {
		return r.live
	}
	return r.options.Cached
}

// remove deletes operands that the inputs exclude.
func (r *Reconciler) remove(ctx context.Context, in operands.Inputs) error {
	unwanted, err := operands.Unwanted(r.options.Manifests, in)
	if err != nil {
		return err
	}
	for _, one := range unwanted {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(one.GroupVersionKind())
		if err := r.options.Cached.Get(ctx, client.ObjectKeyFromObject(one), found); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("reading %s: %w", nameOf(one), err)
		}
		if err := r.live.Delete(ctx, one); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", nameOf(one), err)
		}
		log.FromContext(ctx).Info("Deleted", "object", nameOf(one))
	}
	return nil
}

// rollout returns when to requeue because something does not run as applied yet, or zero.
func (r *Reconciler) rollout(ctx context.Context, applied []*unstructured.Unstructured) (time.Duration, error) {
	var waits []time.Duration
	var reasons []string
	for _, one := range applied {
		why, wait, err := rolledOut(one, r.clock.Now())
		if err != nil {
			return 0, err
		}
		if why != "" {
			reasons, waits = append(reasons, why), append(waits, wait)
		}
	}
	if len(waits) > 0 {
		log.FromContext(ctx).V(1).Info("Waiting for the rollout", "why", strings.Join(reasons, "; "))
		return slices.Min(waits), r.crash(ctx)
	}
	if !initial(r.status.before) {
		return 0, nil
	}
	why, err := r.workers(ctx)
	if err != nil || why == "" {
		return 0, err
	}
	return 0, errors.New(why)
}

// related returns references to objects, for whoever collects what belongs to the installation.
func related(namespace string, objects []*unstructured.Unstructured) []configv1.ObjectReference {
	references := []configv1.ObjectReference{
		{Resource: "namespaces", Name: namespace},
		{Group: "machine.openshift.io", Resource: "machines", Namespace: namespace},
		{Group: "machine.openshift.io", Resource: "machinesets", Namespace: namespace},
		{Group: "machine.openshift.io", Resource: "machinehealthchecks", Namespace: namespace},
	}
	for _, one := range objects {
		kind := one.GroupVersionKind()
		plural := strings.ToLower(kind.Kind) + "s"
		if strings.HasSuffix(plural, "ys") {
			plural = strings.TrimSuffix(plural, "ys") + "ies"
		}
		references = append(references, configv1.ObjectReference{Group: kind.Group, Resource: plural,
			Namespace: one.GetNamespace(), Name: one.GetName()})
	}
	return references
}
