package secretprotection

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// statesInterval is how often to look for remaining states once the last Machine is gone.
const statesInterval = time.Minute

// keepRights adds or removes the finalizer of the RoleBinding that grants this process its
// permissions. In a namespace being deleted, removing it must be the last write.
func (c *Controller) keepRights(ctx context.Context, needed bool) (reconcile.Result, error) {
	if c.binding.Name == "" || c.kept != nil && *c.kept == needed {
		return reconcile.Result{}, nil
	}
	if !needed {
		states := metadataList()
		if err := c.reader.List(ctx, states, client.InNamespace(c.binding.Namespace), client.HasLabels{c.stateLabel},
			client.Limit(1)); err != nil {
			return reconcile.Result{}, fmt.Errorf("listing states: %w", err)
		}
		if len(states.Items) > 0 {
			return reconcile.Result{RequeueAfter: statesInterval}, nil
		}
	}
	if err := c.writeRights(ctx, needed); err != nil {
		return reconcile.Result{}, fmt.Errorf("protecting the RoleBinding %s: %w", c.binding, err)
	}
	c.kept = &needed
	return reconcile.Result{}, nil
}

func (c *Controller) writeRights(ctx context.Context, needed bool) error {
	binding := &rbacv1.RoleBinding{}
	err := c.reader.Get(ctx, c.binding, binding)
	changed := err == nil && (needed && binding.DeletionTimestamp == nil &&
		controllerutil.AddFinalizer(binding, Finalizer) ||
		!needed && controllerutil.RemoveFinalizer(binding, Finalizer))
	if changed {
		err = c.client.Update(ctx, binding)
	}
	if apierrors.IsForbidden(err) || needed && apierrors.IsNotFound(err) {
		log.FromContext(ctx).Info("Deleting the namespace would strand its instances: this process cannot protect its "+
			"permissions",
			"rolebinding", c.binding.String(), "why", err.Error(), "fix", "see docs/install.md, a manager of another namespace")
		return nil
	}
	return client.IgnoreNotFound(err)
}
