package servingcert

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Name is the controller's.
const Name = "webhook-certificate"

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Minute
)

// SetupWithManager registers the Keeper with a manager. It works in every replica, leader or not:
// each serves webhooks.
func (k *Keeper) SetupWithManager(mgr manager.Manager) error {
	watched, err := k.newCache(mgr)
	if err != nil {
		return fmt.Errorf("making a cache for the webhooks' certificate: %w", err)
	}
	if err := mgr.Add(&everywhere{watched}); err != nil {
		return fmt.Errorf("adding the cache for the webhooks' certificate: %w", err)
	}
	k.reader, k.writer = watched, mgr.GetClient()
	always := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} }
	registration := builder.ControllerManagedBy(mgr).Named(Name).WithOptions(controller.Options{
		NeedLeaderElection:      ptr.To(false),
		MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry,
			lastRetry),
	}).WatchesRawSource(source.Func(func(_ context.Context,
		queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{}) // there may be nothing yet to have an event for
		return nil
	}))
	for _, object := range []client.Object{
		&corev1.Secret{}, &admissionregistrationv1.MutatingWebhookConfiguration{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		registration.WatchesRawSource(source.Kind(watched, object, handler.EnqueueRequestsFromMapFunc(always)))
	}
	if err := registration.Complete(k); err != nil {
		return fmt.Errorf("registering the keeper of the webhooks' certificate: %w", err)
	}
	return nil
}

// newCache returns a cache of three objects, each watched by its name: the rights are for no more,
// and there may be many Secrets.
func (k *Keeper) newCache(mgr manager.Manager) (cache.Cache, error) {
	byName := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	return cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{k.options.Secret.Namespace: {FieldSelector: byName(k.options.Secret.Name)}},
			},
			&admissionregistrationv1.MutatingWebhookConfiguration{}:   {Field: byName(k.options.Configuration)},
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: byName(k.options.Configuration)},
		},
		ReaderFailOnMissingInformer: true,
	})
}

// everywhere is a cache that does not wait for this process to lead.
type everywhere struct{ cache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*everywhere) NeedLeaderElection() bool { return false }
