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
	// A restarting API server refuses callers that it knows until its authorizer has loaded its rules.
	deniedAttempts = 6
)

// bounded gives a context without a deadline one.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.options.Patience)
}

// do calls the API until it gives a response that a retry would not change. uncertain says that an earlier attempt may
// have been carried out though its response was lost. When ctx ends first, err is an *UnavailableError.
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
		s.options.Logger.V(1).Info("The API server does not respond, trying again", "doing", doing, "attempt", attempt, "error", err.Error())
		if !s.wait(ctx, attempt, err) {
			return uncertain, &UnavailableError{Doing: doing, Err: err}
		}
	}
}

// attempt keeps one lost connection from using up all the time there is.
func (s *Store) attempt(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	return call(ctx)
}

// wait sleeps before the next attempt, false when ctx ends first.
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

// isDenied reports whether the API server may have refused the call because it has not loaded its rules yet.
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
