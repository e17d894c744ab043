package secretprotection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// Name is the controller's name in logs, metrics and events.
	Name = "secretprotection"
	// Finalizer keeps a Secret while its namespace is deleted and a Machine needs it.
	Finalizer = "machine-iac.io/needed-by-machines"
	// everySecret is the name in the request to process all Secrets.
	everySecret = ""
)

// Options configure a Controller. Client and Reader are required.
type Options struct {
	pipeline.Common

	// Shared are the names of Secrets that every Machine needs.
	Shared []string
	// Binding is the RoleBinding that grants this process its permissions in the Machines'
	// namespace; zero to leave it unprotected.
	Binding types.NamespacedName
	// StateLabel marks the state Secrets, which need permissions beyond the last Machine.
	StateLabel string
}

// Controller adds and removes the finalizers of Secrets.
type Controller struct {
	client client.Client
	reader client.Reader
	shared []string

	binding    types.NamespacedName
	stateLabel string
	// kept reports whether the binding is protected; nil if unknown.
	kept *bool
}

var _ reconcile.Reconciler = &Controller{}

// New returns a Controller. It fails when a required option is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Reader == nil {
		return nil, errors.New("creating the secretprotection controller: Client and Reader must be set in its options")
	}
	return &Controller{
		client: options.Client, reader: options.Reader, shared: options.Shared, binding: options.Binding,
		stateLabel: options.StateLabel,
	}, nil
}

// Reconcile adds or removes a Secret's finalizer. The request for all Secrets removes remaining
// finalizers when the last Machine is gone.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Name != everySecret {
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := c.client.Get(ctx, request.NamespacedName, secret); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		return reconcile.Result{}, c.settle(ctx, secret)
	}
	needed, err := c.anyMachine(ctx, request.Namespace)
	if err == nil && !needed {
		err = c.settleAll(ctx, request.Namespace)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return c.keepRights(ctx, needed)
}

func (c *Controller) settleAll(ctx context.Context, namespace string) error {
	secrets := metadataList()
	if err := c.client.List(ctx, secrets, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing Secrets: %w", err)
	}
	var failed []error
	for i := range secrets.Items {
		failed = append(failed, c.settle(ctx, &secrets.Items[i]))
	}
	return errors.Join(failed...)
}

// settle adds or removes the finalizer of a Secret. An object that is being deleted cannot get a
// finalizer.
func (c *Controller) settle(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	protect, err := c.protects(ctx, secret)
	if err != nil || protect == controllerutil.ContainsFinalizer(secret, Finalizer) || protect &&
		secret.DeletionTimestamp != nil {
		return err
	}
	whole := &corev1.Secret{}
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(secret), whole); err != nil {
		return client.IgnoreNotFound(err)
	}
	if whole.UID != secret.UID {
		return nil // another event follows
	}
	changed := protect && whole.DeletionTimestamp == nil && controllerutil.AddFinalizer(whole, Finalizer) ||
		!protect && controllerutil.RemoveFinalizer(whole, Finalizer)
	if !changed {
		return nil
	}
	if err := c.client.Update(ctx, whole); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the finalizer of the Secret: %w", err)
	}
	return nil
}

// protects reports whether a Secret needs the finalizer.
func (c *Controller) protects(ctx context.Context, secret *metav1.PartialObjectMetadata) (bool, error) {
	needed, err := c.anyMachine(ctx, secret.Namespace, c.needs(secret.Name)...)
	if err != nil || !needed || secret.DeletionTimestamp == nil {
		return needed, err
	}
	return c.isTerminating(ctx, secret.Namespace)
}

// isTerminating reports whether a namespace is being deleted. A dry-run creation fails then, which
// requires no permission on namespaces.
func (c *Controller) isTerminating(ctx context.Context, namespace string) (bool, error) {
	probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "machine-iac-probe-"}}
	err := c.client.Create(ctx, probe, client.DryRunAll)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return true, nil
	case err == nil, apierrors.IsForbidden(err), apierrors.IsNotFound(err): // a quota also forbids it
		return false, nil
	default:
		return false, fmt.Errorf("checking whether the namespace is being deleted: %w", err)
	}
}

// needs returns the list options for the Machines that need a Secret.
func (c *Controller) needs(name string) []client.ListOption {
	if slices.Contains(c.shared, name) {
		return nil
	}
	return []client.ListOption{client.MatchingFields{secretsField: name}}
}

// anyMachine reports whether a matching Machine exists.
func (c *Controller) anyMachine(ctx context.Context, namespace string, which ...client.ListOption) (bool, error) {
	machines := &machinev1beta1.MachineList{}
	which = append(which, client.InNamespace(namespace), client.Limit(1), client.UnsafeDisableDeepCopy)
	if err := c.client.List(ctx, machines, which...); err != nil {
		return false, fmt.Errorf("listing Machines: %w", err)
	}
	return len(machines.Items) > 0, nil
}

// metadataList returns an empty list for the metadata of Secrets.
func metadataList() *metav1.PartialObjectMetadataList {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return secrets
}
