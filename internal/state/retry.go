package state

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	firstWait    = 100 * time.Millisecond
	longestWait  = 5 * time.Second
	attemptLimit = 20 * time.Second
	// A restarting API server rejects known callers until its authorizer has loaded the RBAC rules.
	deniedAttempts = 6
)

// bounded adds a deadline to a context that has none.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.options.Patience)
}

// do retries a call until the API server gives a definite response. uncertain means that an attempt
// with a lost response may have succeeded. If ctx ends first, err is an *UnavailableError.
func (s *Store) do(ctx context.Context, doing string, call func(context.Context) error) (uncertain bool, err error) {
	for attempt := 1; ; attempt++ {
		err = s.attempt(ctx, call)
		if err == nil {
			return uncertain, nil
		}
		denied := isDenied(err)
		if denied && attempt >= deniedAttempts {
			return uncertain, err
		}
		if !denied && !isTransient(err) {
			return uncertain, err
		}
		uncertain = uncertain || !denied
		s.options.Logger.V(1).Info("API server does not respond, retrying", "doing", doing, "attempt", attempt, "error",
			err.Error())
		if !s.wait(ctx, attempt, err) {
			return uncertain, &UnavailableError{Doing: doing, Err: err}
		}
	}
}

// attempt limits one call, so that a lost connection does not use up all the time.
func (s *Store) attempt(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	return call(ctx)
}

// wait sleeps until the next attempt. It returns false if ctx ends first.
func (s *Store) wait(ctx context.Context, attempt int, err error) bool {
	pause := longestWait
	if attempt < 7 {
		pause = min(firstWait<<(attempt-1), longestWait)
	}
	pause = pause/2 + rand.N(pause/2+1)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = min(max(pause, time.Duration(seconds)*time.Second), longestWait)
	}
	timer := s.options.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// isDenied reports whether the API server may have rejected the call because it has not loaded its
// RBAC rules yet.
func isDenied(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// isTransient reports whether the same call may succeed later.
func isTransient(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
			apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		utilnet.IsConnectionReset(err) || utilnet.IsConnectionRefused(err) || utilnet.IsHTTP2ConnectionLost(err)
}
