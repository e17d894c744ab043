package pipeline

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Readable reports whether the cluster serves a kind and the client may list its objects in a
// namespace; all namespaces if it is empty. Without the right, it logs what to do: an informer that
// never syncs would end the manager.
func Readable(ctx context.Context, c client.Client, kind schema.GroupVersionKind, namespace, fix string) (bool, error) {
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discovering %s: %w", kind.GroupKind(), err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Group: kind.Group,
			Resource: mapping.Resource.Resource},
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("reading the rights on %s: %w", kind.GroupKind(), err)
	}
	if !review.Status.Allowed {
		log.FromContext(ctx).Info("A controller does not run: the manager may not list its objects; "+fix+
			", and restart the manager", "kind", kind.GroupKind().String(), "namespace", namespace)
	}
	return review.Status.Allowed, nil
}
