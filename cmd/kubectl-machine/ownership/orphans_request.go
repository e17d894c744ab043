package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const (
	defaultOrphanWait = 10 * time.Minute
	// orphanPoll is how often the state is read meanwhile.
	orphanPoll = 2 * time.Second
)

// orphanRequest asks the manager to handle an orphan. Only the leading manager writes states.
type orphanRequest struct {
	live    client.Client
	cluster *inspect.Cluster
	orphan  *inspect.Orphan
}

// destroy requests the destroy of exactly the state that was shown.
func (r *orphanRequest) destroy(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": r.orphan.Version(),
		"annotations":     map[string]string{record.OrphanActionAnnotation: record.OrphanDestroy},
	}})
	if err != nil {
		return fmt.Errorf("requesting the destroy: %w", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.orphan.Namespace, Name: r.orphan.Secret}}
	err = r.live.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("the state of %s was written meanwhile, and nothing is requested; look at it again, and repeat the command", r.orphan.Name())
	}
	return err
}

// waitUntilGone waits for the state to be removed. It returns an error if that does not happen within
// patience, or says why it cannot happen.
func (r *orphanRequest) waitUntilGone(command *cobra.Command, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(command.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(orphanPoll)
	defer ticker.Stop()
	for {
		now, err := inspect.ReadOrphan(ctx, r.cluster, state.Key{Namespace: r.orphan.Namespace, Name: r.orphan.Secret})
		switch {
		case errors.Is(err, state.ErrNotFound):
			return nil
		case ctx.Err() != nil:
			return r.pending(command.Context(), patience)
		case err != nil:
			return err
		}
		if err := r.failed(now); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return r.pending(command.Context(), patience)
		}
	}
}

// pending returns the error for a timeout.
func (r *orphanRequest) pending(ctx context.Context, patience time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%s was not destroyed within %s; the request stays until it is: look at the manager's log, and at 'kubectl machine orphans'%s", r.orphan.Name(), patience, r.withdraw())
}

// failed returns why the state has not been destroyed yet, or nil if nothing says so.
func (r *orphanRequest) failed(now *inspect.Orphan) error {
	switch {
	case now.Action == "":
		return fmt.Errorf("%s was not destroyed: the operator, or somebody else, has dropped the request, which it does where the Machine exists", r.orphan.Name())
	case now.Problem != "" && now.Problem != r.orphan.Problem:
		return fmt.Errorf("%s was not destroyed: %s; the operator tries it again%s", r.orphan.Name(), now.Problem,
			r.withdraw())
	case now.Last != nil && now.Last.Result == record.RunFailed &&
		(r.orphan.Last == nil || r.orphan.Last.Run != now.Last.Run):
		return fmt.Errorf("%s was not destroyed: %s; the operator tries it again%s", r.orphan.Name(), now.Last.Message,
			r.withdraw())
	}
	return nil
}

// withdraw returns how to withdraw the request.
func (r *orphanRequest) withdraw() string {
	return fmt.Sprintf("; to withdraw the request: kubectl annotate secret -n %s %s %s-", r.orphan.Namespace,
		r.orphan.Secret, record.OrphanActionAnnotation)
}
