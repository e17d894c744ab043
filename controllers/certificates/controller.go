package certificates

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// Name is the controller's name in logs, metrics and the flag --controllers.
	Name = "certificates"

	// unexplained is how many requests may be pending beyond one for each Machine.
	unexplained = 100
	// mostForNode is how many requests may be pending for one Node.
	mostForNode = 5
	// tooManyRetry is the delay before a request is checked again that was one of too many.
	tooManyRetry = time.Minute
)

// Options configure a Controller. Client and Reader must be set; MaxConcurrentReconciles is 1 when
// zero. Client reads with the indexes that SetupWithManager registers.
type Options struct {
	pipeline.Common

	// BootstrapUser returns the user name of the bearer of a Machine's bootstrap token. Client
	// certificates are approved for that user only; nil for any bootstrapper.
	BootstrapUser func(machine *machinev1beta1.Machine) string
	// Metrics defaults to metrics that are not exported.
	Metrics *Metrics
}

// Controller approves certificate requests of kubelets.
type Controller struct {
	client        client.Client
	reader        client.Reader
	bootstrapUser func(*machinev1beta1.Machine) string
	metrics       *Metrics
}

var _ reconcile.Reconciler = &Controller{}

// New returns a Controller. It fails when a required option is missing.
func New(options Options) (*Controller, error) {
	if options.Client == nil || options.Reader == nil {
		return nil, errors.New("creating the certificates controller: Client and Reader must be set in its options")
	}
	if options.Metrics == nil {
		options.Metrics = NewMetrics()
	}
	return &Controller{client: options.Client, reader: options.Reader, bootstrapUser: options.BootstrapUser,
		metrics: options.Metrics}, nil
}

// Reconcile approves a request, or leaves it pending.
func (c *Controller) Reconcile(ctx context.Context, of reconcile.Request) (reconcile.Result, error) {
	all, err := c.allPending(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := c.client.Get(ctx, of.NamespacedName, csr); apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting the certificate request: %w", err)
	}
	kind, ours := kinds[csr.Spec.SignerName]
	if !ours || !pending(csr) {
		return reconcile.Result{}, nil
	}
	machine, refused, err := c.check(ctx, csr, all)
	if err != nil {
		return reconcile.Result{}, err
	}
	logger := log.FromContext(ctx).WithValues("kind", kind, "requester", csr.Spec.Username)
	if refused != nil {
		c.metrics.refused.WithLabelValues(kind, refused.reason).Inc()
		logger.Info("Not approving a certificate request", "reason", refused.reason, "why", refused.message)
		if refused.reason == reasonTooMany {
			return reconcile.Result{RequeueAfter: tooManyRetry}, nil
		}
		return reconcile.Result{}, nil // until its Machine changes
	}
	return reconcile.Result{}, c.approve(ctx, csr, machine)
}

// allPending returns how many requests of kubelets are pending.
func (c *Controller) allPending(ctx context.Context) (count int, err error) {
	all := &certificatesv1.CertificateSigningRequestList{}
	if err := c.client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing certificate requests: %w", err)
	}
	for i := range all.Items {
		if kinds[all.Items[i].Spec.SignerName] != "" && pending(&all.Items[i]) {
			count++
		}
	}
	c.metrics.pending.Set(float64(count))
	return count, nil
}

// approve approves a request. The API server refuses it if the request has changed.
func (c *Controller) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	machine types.NamespacedName) error {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubeletOfMachine",
		Message: fmt.Sprintf("Approved for Machine %s", machine),
	})
	err := c.client.SubResource("approval").Update(ctx, csr)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // its next event decides
		return nil
	case err != nil:
		return fmt.Errorf("approving the certificate request: %w", err)
	}
	c.metrics.approved.WithLabelValues(kinds[csr.Spec.SignerName]).Inc()
	log.FromContext(ctx).Info("Approved a certificate request", "Machine", machine.String())
	return nil
}
