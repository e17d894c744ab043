package leadership

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const (
	// confirmedFor is how long a read of the Lease is valid.
	confirmedFor = time.Second
	// ownWait is DeadIn's result for this process's own epoch without timing.
	ownWait = time.Minute
	// releaseTries bounds the attempts to release the Lease.
	releaseTries = 3
)

// Confirm returns nil if this process leads: a fresh read of the Lease names it and its epoch, and
// it has renewed the Lease within the renew deadline. It returns ErrNotLeader and closes Lost if
// another process leads or may lead. Any other error means that leadership is unknown; call it
// again.
func (l *Leadership) Confirm(ctx context.Context) error { return l.confirm(ctx, time.Time{}) }

// confirm is Confirm with a read of the Lease that began after a time.
func (l *Leadership) confirm(ctx context.Context, after time.Time) error {
	if l.alone {
		return nil
	}
	select {
	case l.asking <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting to read Lease %s: %w", l.name, context.Cause(ctx))
	}
	defer func() { <-l.asking }()
	if fresh, err := l.known(after); fresh || err != nil {
		return err
	}
	began := l.now()
	if _, err := (client{l.leases, l}).Get(ctx, l.object, metav1.GetOptions{}); err != nil && l.present() != nil {
		return fmt.Errorf("reading Lease %s to confirm leadership: %w", l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != "" {
		return fmt.Errorf("%w: %s", ErrNotLeader, l.over)
	}
	if !l.active() {
		return fmt.Errorf("the Lease %s was last renewed %s ago, which exceeds the renew deadline of %s; check whether the "+
			"API server is slow",
			l.name, l.age(l.term.renewed).Round(time.Millisecond), l.timing.Renew)
	}
	l.term.confirmed = began
	return nil
}

// known reports whether the last read of the Lease is recent and began after a time. It returns an
// error if this process is known not to lead.
func (l *Leadership) known(after time.Time) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over != "":
		return false, fmt.Errorf("%w: %s", ErrNotLeader, l.over)
	case l.term == nil:
		return false, fmt.Errorf("%w: this process has never led", ErrNotLeader)
	}
	return l.active() && l.term.confirmed.steady.After(after) && l.age(l.term.confirmed) < confirmedFor, nil
}

// DeadIn returns how long the engines of another epoch may still act: zero if they are dead,
// otherwise when to ask again. It first confirms that this process leads. For this process's own
// epoch it never returns zero. An epoch later than this process's cannot be genuine, since the
// Lease, which is read afterwards, would have it. Its engines are treated as those of another
// Lease.
func (l *Leadership) DeadIn(ctx context.Context, held state.Epoch) (time.Duration, error) {
	if l.alone {
		if held.Holder == l.identity {
			return ownWait, nil
		}
		return 0, nil
	}
	var after time.Time
	if l.Epoch().Before(held) {
		after = l.clock.Now()
	}
	if err := l.confirm(ctx, after); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != "" {
		return 0, fmt.Errorf("%w: %s", ErrNotLeader, l.over)
	}
	own := l.term.epoch
	if held == own {
		return l.timing.DeadAfter(), nil
	}
	// The previous holder was silent for its lease, or released the Lease. Earlier holders are
	// known to be dead only in the former case.
	if held.Before(own) && (l.term.waited || l.term.released && held.Transitions == own.Transitions-1) {
		return 0, nil
	}
	// The last renewal in another Lease, or in one taken without waiting, was before this term.
	return max(0, l.timing.DeadAfter()-l.clock.Since(l.term.acquired)), nil
}

// Watch reads the Lease every few seconds. A process that was suspended, or whose machine was, thus
// notices a new leader at once. A leader whose last renewal is too old renews the Lease if it is
// still free. Watch returns when ctx ends or Lost is closed.
func (l *Leadership) Watch(ctx context.Context) {
	if l.alone {
		return
	}
	ticker := l.clock.NewTicker(l.timing.Heartbeat / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.lost:
			return
		case <-ticker.C():
		}
		if l.present() == nil {
			continue
		}
		if err := l.look(ctx); err != nil && !errors.Is(err, ErrNotLeader) {
			l.log.V(1).Info("Cannot confirm leadership", "why", err.Error())
		}
	}
}

// look confirms leadership, or renews the Lease.
func (l *Leadership) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.timing.Heartbeat)
	defer cancel()
	if l.Active() {
		return l.Confirm(ctx)
	}
	leases := client{l.leases, l}
	lease, err := leases.Get(ctx, l.object, metav1.GetOptions{})
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(l.wall()))
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// Release releases the Lease, so that the next leader need not wait. Call it when all engines have
// ended and leader election has stopped; otherwise let the Lease expire. It is a no-op in a process
// that does not lead.
func (l *Leadership) Release(ctx context.Context) error {
	led := l.present()
	if l.alone || led == nil {
		return nil
	}
	l.mu.Lock()
	l.over = "it released the Lease"
	l.mu.Unlock()
	for try := 1; ; try++ {
		err := l.release(ctx, led.epoch)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if try == releaseTries || !apierrors.IsConflict(err) {
			return fmt.Errorf("releasing Lease %s: %w; the next leader waits until it expires", l.name, err)
		}
	}
}

func (l *Leadership) release(ctx context.Context, led state.Epoch) error {
	lease, err := l.leases.Get(ctx, l.object, metav1.GetOptions{})
	if err != nil || epochOf(lease) != led {
		return err
	}
	now := metav1.NewMicroTime(l.clock.Now())
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](1)
	lease.Spec.RenewTime, lease.Spec.AcquireTime = &now, &now
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, releasedAnnotation, strconv.FormatInt(led.Transitions, 10))
	_, err = l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
