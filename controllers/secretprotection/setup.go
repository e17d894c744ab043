package secretprotection

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	defaultConcurrency = 1
	// secretsField indexes Machines by the Secrets that they name.
	secretsField = "secretprotection.secrets"
)

// SetupWithManager creates a Controller and registers it and its watches with the manager. Client
// and Reader default to the manager's. Only the metadata of Secrets is watched; the manager's cache
// may omit Secrets that no Machine names.
func SetupWithManager(ctx context.Context, mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	c, err := New(options)
	if err != nil {
		return err
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &machinev1beta1.Machine{}, secretsField, namesIn)
	if err != nil {
		return fmt.Errorf("indexing Machines by their Secrets: %w", err)
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(&corev1.Secret{}, builder.OnlyMetadata).
			Watches(&machinev1beta1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.requests),
				// Secrets are checked when the watch begins.
				builder.WithPredicates(pipeline.Changes(), predicate.GenerationChangedPredicate{})).
			WatchesRawSource(source.Func(func(_ context.Context,
				queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
				// An earlier process may have exited between the last Machine and the release of
				// the binding.
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: c.binding.Namespace,
					Name: everySecret}})
				return nil
			}))
	})
}

// requests returns the Secrets that a Machine needs, and the request for all Secrets.
func (c *Controller) requests(_ context.Context, machine client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range slices.Concat(namesIn(machine), c.shared, []string{everySecret}) {
		requests = append(requests,
			reconcile.Request{NamespacedName: types.NamespacedName{Namespace: machine.GetNamespace(), Name: name}})
	}
	return requests
}

// namesIn returns the names of the Secrets in the providerSpec of a Machine.
func namesIn(object client.Object) []string {
	machine, ok := object.(*machinev1beta1.Machine)
	if !ok || machine.Spec.ProviderSpec.Value == nil {
		return nil
	}
	var spec any
	if err := json.Unmarshal(machine.Spec.ProviderSpec.Value.Raw, &spec); err != nil {
		return nil
	}
	return appendNames(nil, spec)
}

func appendNames(names []string, value any) []string {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			names = appendNames(names, one)
		}
	case map[string]any:
		for field, one := range value {
			if name := nameIn(one); strings.HasSuffix(field, "Secret") && name != "" {
				names = append(names, name)
				continue
			}
			names = appendNames(names, one)
		}
	}
	return names
}

// nameIn returns the name in a reference, or "".
func nameIn(reference any) string {
	if object, ok := reference.(map[string]any); ok {
		reference = object["name"]
	}
	name, _ := reference.(string)
	return name
}
