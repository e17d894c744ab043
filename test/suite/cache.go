package suite

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// promptCache notices at once that an informer or handler has synced. client-go polls every 100 ms, which a manager
// does twice before its first reconcile, and once more at the first Get of another kind.
type promptCache struct{ cache.Cache }

func newCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	created, err := cache.New(config, options)
	return promptCache{created}, err
}

func (c promptCache) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	if _, err := c.GetInformer(ctx, object); err != nil {
		return err
	}
	return c.Cache.Get(ctx, key, object, options...)
}

func (c promptCache) GetInformer(ctx context.Context, object client.Object,
	options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	await(ctx, informer.HasSynced)
	informer, err = c.Cache.GetInformer(ctx, object, options...)
	return promptInformer{informer}, err
}

type promptInformer struct{ cache.Informer }

func (i promptInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler,
	options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := i.Informer.AddEventHandlerWithOptions(handler, options)
	if err == nil {
		await(context.Background(), registration.HasSynced)
	}
	return registration, err
}

// await returns when synced does, or after 100 ms: then client-go polls.
func await(ctx context.Context, synced func() bool) {
	_ = wait.PollUntilContextTimeout(ctx, time.Millisecond, 100*time.Millisecond, true,
		func(context.Context) (bool, error) { return synced(), nil })
}
