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
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// releasedAnnotation on a Lease without a holder has the leaseTransitions of the term that was given back. A Lease that a person has
// emptied lacks it, and its last holder may still be alive.
const releasedAnnotation = "machine-iac.io/released-term"

// getter and client are the Leases that the leader election sees.
type getter struct{ leadership *Leadership }

// Leases implements coordinationv1client.LeasesGetter.
func (g getter) Leases(string) coordinationv1client.LeaseInterface {
	return client{LeaseInterface: g.leadership.leases, leadership: g.leadership}
}

type client struct {
	coordinationv1client.LeaseInterface
	leadership *Leadership
}

// Get notes what the Lease says.
func (c client) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	led := c.leadership.ledIn()
	lease, err := c.LeaseInterface.Get(ctx, name, options)
	c.leadership.observe(led, lease, err)
	return lease, err
}

// Create notes the beginning of a term.
func (c client) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	began, err := c.leadership.mayWrite(lease)
	if err != nil {
		return nil, err
	}
	made, err := c.LeaseInterface.Create(ctx, lease, options)
	if err == nil {
		c.leadership.renew(began, made)
	}
	return made, err
}

// Update notes the beginning of a term, or its renewal.
func (c client) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	began, err := c.leadership.mayWrite(lease)
	if err != nil {
		return nil, err
	}
	led := c.leadership.ledIn()
	updated, err := c.LeaseInterface.Update(ctx, lease, options)
	if err != nil {
		c.leadership.observe(led, nil, err)
		return updated, err
	}
	c.leadership.renew(began, updated)
	return updated, nil
}

// ledIn is the epoch in which this process leads, nil while it doesn't.
func (l *Leadership) ledIn() *state.Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil || l.over != "" {
		return nil
	}
	return ptr.To(l.term.epoch)
}

// observe compares the Lease with the epoch in which this process led when it asked.
func (l *Leadership) observe(led *state.Epoch, lease *coordinationv1.Lease, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil && led != nil && apierrors.IsNotFound(err):
		l.lose("the Lease was deleted")
	case err != nil:
	case led == nil:
		l.note(lease)
	case epochOf(lease) != *led:
		l.lose(fmt.Sprintf("it led in %s, and the Lease says %s", led, epochOf(lease)))
	}
}

// note keeps since when another's Lease has not changed. The caller holds the lock.
func (l *Leadership) note(lease *coordinationv1.Lease) {
	now := observation{
		epoch: epochOf(lease), since: l.clock.Now(),
		lease:    time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
		released: lease.Annotations[releasedAnnotation] == strconv.Itoa(int(ptr.Deref(lease.Spec.LeaseTransitions, 0))),
	}
	if lease.Spec.RenewTime != nil {
		now.renew = lease.Spec.RenewTime.Time
	}
	if now.epoch != l.seen.epoch || !now.renew.Equal(l.seen.renew) {
		l.seen = now
	}
}

// mayWrite returns when a renewal begins, or why there may be none: a process that has lost a term ends, and takes no other. Neither may
// the leader election give the Lease back, which would do so while engines run.
func (l *Leadership) mayWrite(lease *coordinationv1.Lease) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != "" {
		return time.Time{}, fmt.Errorf("%w: %s", ErrNotLeader, l.over)
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") != l.identity {
		return time.Time{}, errors.New("the Lease is kept until this process has ended all engines")
	}
	return l.clock.Now(), nil
}

// renew notes a renewal that began then.
func (l *Leadership) renew(began time.Time, lease *coordinationv1.Lease) {
	if l.noteRenewal(began, epochOf(lease)) && l.renewed != nil {
		l.renewed()
	}
}

func (l *Leadership) noteRenewal(began time.Time, epoch state.Epoch) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over != "":
		return false
	case l.term == nil:
		before := l.seen
		l.term = &term{
			epoch: epoch, acquired: l.clock.Now(), renewed: began,
			waited:   before.epoch.Lease == epoch.Lease && before.epoch.Holder != "" && began.Sub(before.since) >= max(before.lease, l.timing.Lease),
			released: before.epoch.Lease == epoch.Lease && before.epoch.Holder == "" && before.released,
		}
		l.log.Info("This process leads", "epoch", epoch.String())
	case l.term.epoch != epoch:
		l.lose(fmt.Sprintf("it led in %s, and the Lease says %s", l.term.epoch, epoch))
		return false
	default:
		l.term.renewed = began
	}
	return true
}
