package leadership

import (
	"context"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
)

// former is the Lease that earlier versions use for leader election.
type former struct {
	leases coordinationv1client.LeaseInterface
	name   types.NamespacedName
	seen   observation
}

// retire takes the Lease of earlier versions permanently, so that none of them leads beside this
// process. It returns an error while one may lead.
func (l *Leadership) retire(ctx context.Context) error {
	if l.former == nil || l.present() != nil {
		return nil
	}
	lease, err := l.former.leases.Get(ctx, l.former.name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Lease %s of earlier versions: %w", l.former.name, err)
	}
	moved := "moved to " + l.name
	seen := &l.former.seen
	l.note(seen, lease)
	switch wait := max(seen.lease, l.timing.Lease) - l.clock.Since(seen.since); {
	case seen.epoch.Holder == moved:
		return nil
	case seen.epoch.Holder != "" && wait > 0:
		return fmt.Errorf("an earlier version may hold Lease %s: its holder is %s, and %s must pass without a renewal",
			l.former.name, seen.epoch.Holder, wait.Round(time.Second))
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &moved, ptr.To[int32](math.MaxInt32)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(l.wall()))
	lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	if _, err = l.former.leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("taking Lease %s from earlier versions: %w", l.former.name, err)
	}
	return nil
}
