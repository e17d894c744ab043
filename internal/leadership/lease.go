package leadership

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
)

// releasedAnnotation on a Lease without a holder has the leaseTransitions of the released term. A
// Lease emptied by a person lacks it, and its last holder may still be alive.
const releasedAnnotation = "machine-iac.io/released-term"

// getter and client wrap the Lease for the leader election.
type getter struct{ leadership *Leadership }

// Leases implements coordinationv1client.LeasesGetter.
func (g getter) Leases(string) coordinationv1client.LeaseInterface {
	return client{LeaseInterface: g.leadership.leases, leadership: g.leadership}
}

type client struct {
	coordinationv1client.LeaseInterface
	leadership *Leadership
}

// Get records the Lease that was read.
func (c client) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	before := c.leadership.present()
	lease, err := c.LeaseInterface.Get(ctx, name, options)
	c.leadership.observe(before, lease, err)
	return lease, err
}

// Create records the start of a term.
func (c client) Create(ctx context.Context, lease *coordinationv1.Lease,
	options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	began, err := c.leadership.mayWrite(lease)
	if err != nil {
		return nil, err
	}
	if err := c.leadership.retire(ctx); err != nil {
		return nil, err
	}
	made, err := c.LeaseInterface.Create(ctx, lease, options)
	if err != nil {
		return nil, err
	}
	return made, c.leadership.renew(ctx, began, made)
}

// Update records the start of a term or its renewal.
func (c client) Update(ctx context.Context, lease *coordinationv1.Lease,
	options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	began, err := c.leadership.mayWrite(lease)
	if err != nil {
		return nil, err
	}
	if err := c.leadership.retire(ctx); err != nil {
		return nil, err
	}
	before := c.leadership.present()
	updated, err := c.LeaseInterface.Update(ctx, lease, options)
	if err != nil {
		c.leadership.observe(before, nil, err)
		return updated, err
	}
	return updated, c.leadership.renew(ctx, began, updated)
}

// present returns a copy of the current term, or nil.
func (l *Leadership) present() *term {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil || l.over != "" {
		return nil
	}
	return ptr.To(*l.term)
}

// observe compares the Lease with the term at the time of the request.
func (l *Leadership) observe(before *term, lease *coordinationv1.Lease, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil && before != nil && apierrors.IsNotFound(err):
		l.lose("the Lease was deleted")
	case err != nil:
	case before == nil:
		l.noteOther(lease)
	case epochOf(lease) != before.epoch:
		l.lose(fmt.Sprintf("it led in %s, but the Lease says %s", before.epoch, epochOf(lease)))
	case older(lease.ResourceVersion, before.version):
		l.lose(fmt.Sprintf("the API server was restored from a backup: the Lease's resourceVersion went back from %s to %s",
			before.version, lease.ResourceVersion))
	case older(l.term.version, lease.ResourceVersion):
		l.term.version = lease.ResourceVersion
	}
}

// older reports whether a resourceVersion of the Lease precedes another. In one history of an API
// server they only grow.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// noteOther records another holder's Lease. The caller holds the lock.
func (l *Leadership) noteOther(lease *coordinationv1.Lease) {
	if epochOf(lease).Holder == l.identity {
		return // this process took the Lease but failed to read the API server's clock: keep the previous holder
	}
	l.note(&l.seen, lease)
}

// note tracks since when a Lease has not changed.
func (l *Leadership) note(seen *observation, lease *coordinationv1.Lease) {
	now := observation{
		epoch: epochOf(lease), since: l.clock.Now(),
		lease:    time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
		released: lease.Annotations[releasedAnnotation] == strconv.Itoa(int(ptr.Deref(lease.Spec.LeaseTransitions, 0))),
	}
	if lease.Spec.RenewTime != nil {
		now.renew = lease.Spec.RenewTime.Time
	}
	if now.epoch != seen.epoch || !now.renew.Equal(seen.renew) {
		*seen = now
	}
}

// mayWrite returns the start of a renewal, or why it is not allowed: a process that has lost a term
// exits and takes no other. Nor may the leader election release the Lease, since engines may still
// run.
func (l *Leadership) mayWrite(lease *coordinationv1.Lease) (moment, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != "" {
		return moment{}, fmt.Errorf("%w: %s", ErrNotLeader, l.over)
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") != l.identity {
		return moment{}, errors.New("the Lease is held until all engines of this process have ended")
	}
	return l.now(), nil
}

// renew records a renewal. An error means that the term has not begun although this process holds
// the Lease; the leader election retries.
func (l *Leadership) renew(ctx context.Context, began moment, lease *coordinationv1.Lease) error {
	var at time.Time
	if l.present() == nil {
		var err error
		if at, err = l.serverTime(ctx); err != nil {
			return fmt.Errorf("reading the API server's clock with a dry run in the namespace of %s: %w", l.name, err)
		}
	}
	if l.noteRenewal(began, at, lease) && l.renewed != nil {
		l.renewed()
	}
	return nil
}

// serverTime returns the API server's time. It is read after the Lease was taken, so that it is
// later than any earlier restore of etcd.
func (l *Leadership) serverTime(ctx context.Context) (time.Time, error) {
	probe := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{GenerateName: l.object + "-"}}
	stamped, err := l.leases.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return time.Time{}, err
	}
	return roundUp(stamped.CreationTimestamp.Time), nil
}

func (l *Leadership) noteRenewal(began moment, at time.Time, lease *coordinationv1.Lease) bool {
	epoch := epochOf(lease)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over != "":
		return false
	case l.term == nil:
		before := l.seen
		silent := began.steady.Sub(before.since)
		l.term = &term{
			epoch: epoch, began: at, acquired: l.clock.Now(),
			waited: before.epoch.Lease == epoch.Lease && before.epoch.Holder != "" &&
				silent >= max(before.lease, l.timing.Lease),
			released: before.epoch.Lease == epoch.Lease && before.epoch.Holder == "" && before.released,
		}
		l.log.Info("This process leads", "epoch", epoch.String(), "began", at)
	case l.term.epoch != epoch:
		l.lose(fmt.Sprintf("it led in %s, but the Lease says %s", l.term.epoch, epoch))
		return false
	}
	l.term.renewed, l.term.version = began, lease.ResourceVersion
	return true
}
