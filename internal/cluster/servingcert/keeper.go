package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// settleTime is how long API servers get to see whom they are to trust.
	settleTime = 5 * time.Second
	// conflictRetry is how long somebody else's write gets to arrive here.
	conflictRetry = time.Second
	// maxRequeueAfter is the longest time between two reconciles: longer timers would miss that the
	// clock is set.
	maxRequeueAfter = 12 * time.Hour
)

// Options are what a Keeper works with. All but Clock must be set.
type Options struct {
	// Secret is where certificate and authority are kept. It is made when it is missing.
	Secret types.NamespacedName
	// DNSNames are the names by which API servers reach the webhooks.
	DNSNames []string
	// Configuration is the name of the MutatingWebhookConfiguration and of the
	// ValidatingWebhookConfiguration that get the authority to trust. Neither needs to exist.
	Configuration string
	// Clock is the system's when nil.
	Clock clock.PassiveClock
}

// Keeper keeps a certificate. [New] makes one, SetupWithManager sets it to work.
type Keeper struct {
	options Options
	maker   maker
	reader  client.Reader
	writer  client.Writer
	settle  time.Duration
	// served is read by the TLS server; all else is touched by the one reconcile at a time only.
	served atomic.Pointer[served]
	// coming is material of a new authority that waits to be served.
	coming coming
}

// served is a certificate in use.
type served struct {
	pair      *tls.Certificate
	authority []byte
}

// coming is an authority that the configurations trust since a time.
type coming struct {
	authority []byte
	since     time.Time
}

// New makes a Keeper.
func New(options Options) (*Keeper, error) {
	if options.Secret.Name == "" || options.Secret.Namespace == "" || len(options.DNSNames) == 0 ||
		options.Configuration == "" {
		return nil, errors.New("keeping a certificate: Secret, DNSNames and Configuration must be set in the options")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Keeper{options: options, maker: maker{names: options.DNSNames}, settle: settleTime}, nil
}

// GetCertificate returns the certificate, as a [tls.Config] asks for it.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	now := k.served.Load()
	if now == nil {
		return nil, errors.New("there is no certificate yet; the log says what keeps it from being made")
	}
	return now.pair, nil
}

// Reconcile implements reconcile.Reconciler. There is one thing to see to, whatever the request
// names.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	now := k.options.Clock.Now()
	kept, err := k.kept(ctx, now)
	if errors.Is(err, errConflict) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	next := min(renewalIn(kept, now), maxRequeueAfter)
	for _, configuration := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		holds, err := k.setAuthority(ctx, configuration, kept.authority, now)
		if errors.Is(err, errConflict) {
			return reconcile.Result{RequeueAfter: conflictRetry}, nil
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		if holds > 0 {
			next = min(next, holds)
		}
	}
	wait, err := k.serve(kept, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if wait > 0 {
		next = min(next, wait)
	}
	return reconcile.Result{RequeueAfter: max(next, time.Second)}, nil
}

// errConflict says that somebody else has written first.
var errConflict = errors.New("somebody else has written it meanwhile")

// kept returns what the Secret holds, made or renewed where it must be.
func (k *Keeper) kept(ctx context.Context, now time.Time) (material, error) {
	secret := &corev1.Secret{}
	err := k.reader.Get(ctx, k.options.Secret, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return material{}, fmt.Errorf("reading the Secret of the webhooks' certificate: %w", err)
	}
	kept, changed, err := k.maker.renew(materialOf(secret), now)
	if err != nil || !changed {
		return kept, err
	}
	kept.into(secret)
	write := func() error { return k.writer.Update(ctx, secret) }
	if missing {
		secret.ObjectMeta = metav1.ObjectMeta{
			Namespace: k.options.Secret.Namespace, Name: k.options.Secret.Name,
			Labels: map[string]string{"app.kubernetes.io/name": "machine-iac-operator"},
		}
		secret.Type = corev1.SecretTypeTLS
		write = func() error { return k.writer.Create(ctx, secret) }
	}
	switch err := write(); {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && !missing:
		return material{}, errConflict
	case err != nil:
		return material{}, fmt.Errorf("writing the Secret of the webhooks' certificate: %w", err)
	}
	log.FromContext(ctx).Info("Made a certificate for the webhooks", "Secret", k.options.Secret,
		"renewalIn", renewalIn(kept, now).String())
	return kept, nil
}

// setAuthority has a configuration trust an authority, and returns how long what it holds then
// stays right; zero for as long as the authority does.
func (k *Keeper) setAuthority(ctx context.Context, configuration client.Object, authority []byte,
	now time.Time) (time.Duration, error) {
	err := k.reader.Get(ctx, client.ObjectKey{Name: k.options.Configuration}, configuration)
	if apierrors.IsNotFound(err) {
		return 0, nil // nobody calls, or somebody else sees to it
	}
	if err != nil {
		return 0, fmt.Errorf("reading a webhook configuration: %w", err)
	}
	before, ok := configuration.DeepCopyObject().(client.Object)
	if !ok {
		return 0, fmt.Errorf("copying a webhook configuration: %T is no object", configuration)
	}
	changed, holds := trust(configuration, authority, now)
	if !changed {
		return holds, nil
	}
	k.coming = coming{} // it is seen from now on
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	switch err := k.writer.Patch(ctx, configuration, patch); {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return 0, errConflict
	case err != nil:
		return 0, fmt.Errorf("writing the authority into %T %s: %w", configuration, k.options.Configuration, err)
	}
	log.FromContext(ctx).Info("Wrote the authority into a webhook configuration", "configuration", k.options.Configuration,
		"kind", fmt.Sprintf("%T", configuration))
	return holds, nil
}

// serve takes a certificate into use. One of another authority than that of the certificate in use
// waits until API servers have had time to see whom to trust; serve returns how long.
func (k *Keeper) serve(kept material, now time.Time) (time.Duration, error) {
	pair, err := kept.pair()
	if err != nil {
		return 0, err
	}
	using := k.served.Load()
	useful := using != nil && using.pair.Leaf != nil && now.Before(using.pair.Leaf.NotAfter)
	if useful && !bytes.Equal(using.authority, kept.authority) {
		if !bytes.Equal(k.coming.authority, kept.authority) {
			k.coming = coming{authority: kept.authority, since: now}
		}
		if wait := k.settle - now.Sub(k.coming.since); wait > 0 {
			return wait, nil
		}
	}
	k.coming = coming{}
	k.served.Store(&served{pair: pair, authority: kept.authority})
	return 0, nil
}
