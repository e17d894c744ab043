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
	// confirmedFor is how long a read of the Lease counts.
	confirmedFor = time.Second
	// ownWait is what DeadIn returns for this process's own epoch where there is no timing.
	ownWait = time.Minute
	// releaseTries bounds the writes that give the Lease back.
	releaseTries = 3
)

// Confirm returns nil if this process leads: it has just read the Lease, which names it in its epoch, and has renewed it within the renew
// deadline. It returns ErrNotLeader, and closes Lost, if another leads or may. Another error means that it is unknown; call it again.
func (l *Leadership) Confirm(ctx context.Context) error {
	if l.alone {
		return nil
	}
	select {
	case l.asking <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting to read the Lease %s: %w", l.name, context.Cause(ctx))
	}
	defer func() { <-l.asking }()
	if fresh, err := l.known(); fresh || err != nil {
		return err
	}
	began := l.clock.Now()
	if _, err := (client{l.leases, l}).Get(ctx, l.object, metav1.GetOptions{}); err != nil && l.ledIn() != nil {
		return fmt.Errorf("reading the Lease %s to confirm that this process leads: %w", l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != "" {
		return fmt.Errorf("%w: %s", ErrNotLeader, l.over)
	}
	if !l.active() {
		return fmt.Errorf("the Lease %s was last renewed %s ago, more than the renew deadline of %s; see whether the API server is slow",
			l.name, l.clock.Since(l.term.renewed).Round(time.Millisecond), l.timing.Renew)
	}
	l.term.confirmed = began
	return nil
}

// known reports whether a read of the Lease is young enough, and returns an error where none is needed.
func (l *Leadership) known() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over != "":
		return false, fmt.Errorf("%w: %s", ErrNotLeader, l.over)
	case l.term == nil:
		return false, fmt.Errorf("%w: it has not led yet", ErrNotLeader)
	}
	return l.active() && !l.term.confirmed.IsZero() && l.clock.Since(l.term.confirmed) < confirmedFor, nil
}

// DeadIn returns after how long the engines of another epoch can't act any more: zero if they are dead, otherwise when to ask again. It
// confirms first that this process leads. For this process's own epoch it never returns zero.
func (l *Leadership) DeadIn(ctx context.Context, held state.Epoch) (time.Duration, error) {
	if l.alone {
		if held.Holder == l.identity {
			return ownWait, nil
		}
		return 0, nil
	}
	if err := l.Confirm(ctx); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != "" {
		return 0, fmt.Errorf("%w: %s", ErrNotLeader, l.over)
	}
	own := l.term.epoch
	if held == own || held.Holder == own.Holder {
		return l.timing.DeadAfter(), nil
	}
	if own.Before(held) {
		l.lose(fmt.Sprintf("it led in %s and met %s", own, held))
		return 0, fmt.Errorf("%w: %s", ErrNotLeader, l.over)
	}
	// The holder before was silent for its lease, or gave the Lease back. Those before it are only known to be dead by the former.
	if held.Before(own) && (l.term.waited || l.term.released && held.Transitions == own.Transitions-1) {
		return 0, nil
	}
	// The last renewal in another Lease, or in one that was taken without waiting, was before this term.
	return max(0, l.timing.DeadAfter()-l.clock.Since(l.term.acquired)), nil
}

// Watch looks at the Lease whenever this process has not renewed it in time: one that was stopped for a while and goes on sees at once
// that another leads, and does not wait for its next renewal. It returns when ctx ends or Lost is closed.
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
		if l.ledIn() == nil || l.Active() {
			continue
		}
		if err := l.Confirm(ctx); err != nil && !errors.Is(err, ErrNotLeader) {
			l.log.V(1).Info("It is unknown whether this process leads", "why", err.Error())
		}
	}
}

// Release gives the Lease back, so that the next leader needs not wait. Call it when all engines have ended and the leader election has
// stopped; without both, leave the Lease to expire. It does nothing in a process that does not lead.
func (l *Leadership) Release(ctx context.Context) error {
	led := l.ledIn()
	if l.alone || led == nil {
		return nil
	}
	l.mu.Lock()
	l.over = "it gave the Lease back"
	l.mu.Unlock()
	for try := 1; ; try++ {
		err := l.release(ctx, *led)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if try == releaseTries || !apierrors.IsConflict(err) {
			return fmt.Errorf("giving the Lease %s back: %w; the next leader waits until it expires", l.name, err)
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
