package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

var secrets = schema.GroupResource{Resource: "secrets"}

func TestIsTransient(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"connection refused": {err: &url.Error{Op: "Put", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
			want: true},
		"connection reset":      {err: fmt.Errorf("reading: %w", syscall.ECONNRESET), want: true},
		"cut off":               {err: io.ErrUnexpectedEOF, want: true},
		"an attempt timed out":  {err: context.DeadlineExceeded, want: true},
		"throttled":             {err: apierrors.NewTooManyRequests("later", 1), want: true},
		"internal error":        {err: apierrors.NewInternalError(errors.New("etcd")), want: true},
		"service unavailable":   {err: apierrors.NewServiceUnavailable("starting"), want: true},
		"server timeout":        {err: apierrors.NewServerTimeout(secrets, "update", 1), want: true},
		"gateway timeout":       {err: apierrors.NewTimeoutError("slow", 1), want: true},
		"not found":             {err: apierrors.NewNotFound(secrets, "a")},
		"conflict":              {err: apierrors.NewConflict(secrets, "a", errors.New("changed"))},
		"invalid":               {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", nil)},
		"too large":             {err: apierrors.NewRequestEntityTooLargeError("big")},
		"a bug in this program": {err: errors.New("no kind is registered")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isTransient(tc.err); got != tc.want {
				t.Errorf("isTransient(%v) = %t, want %t", tc.err, got, tc.want)
			}
		})
	}
}

func TestDo(t *testing.T) {
	refused := &url.Error{Op: "Put", Err: syscall.ECONNREFUSED}
	forbidden := apierrors.NewForbidden(secrets, "a", errors.New("no"))
	terminating := apierrors.NewForbidden(secrets, "a", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		errs          []error // the last one repeats
		wantCalls     int
		wantErr       error
		wantUncertain bool
	}{
		"success needs one call": {errs: []error{nil}, wantCalls: 1},
		"a lost connection is tried again": {errs: []error{refused, refused, nil}, wantCalls: 3,
			wantUncertain: true},
		"what a retry cannot fix is not tried again": {errs: []error{errors.ErrUnsupported}, wantCalls: 1,
			wantErr: errors.ErrUnsupported},
		"a refusal while the server starts is no refusal": {errs: []error{forbidden, forbidden, nil}, wantCalls: 3},
		"a refusal that stays is one": {errs: []error{forbidden}, wantCalls: deniedAttempts,
			wantErr: forbidden},
		"a namespace that ends is no server that starts": {errs: []error{terminating}, wantCalls: 1,
			wantErr: terminating},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			clock := clocktesting.NewFakeClock(time.Now())
			go stepWhenWaitedFor(ctx, clock)
			calls := 0
			uncertain, err := New(nil, Options{Clock: clock}).do(ctx, "testing", func(context.Context) error {
				calls++
				return tc.errs[min(calls, len(tc.errs))-1]
			})
			if calls != tc.wantCalls || uncertain != tc.wantUncertain || !errors.Is(err, tc.wantErr) {
				t.Errorf("got %d calls, uncertain %t, %v; want %d, %t, %v", calls, uncertain, err, tc.wantCalls,
					tc.wantUncertain,
					tc.wantErr)
			}
		})
	}
}

func TestDoEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	uncertain, err := New(nil, Options{}).do(ctx, "testing", func(context.Context) error { return io.EOF })
	unavailable, ok := errors.AsType[*UnavailableError](err)
	if !ok || !uncertain || !errors.Is(unavailable.Err, io.EOF) {
		t.Errorf("got uncertain %t, %v; want an UnavailableError with the last error", uncertain, err)
	}
}

func stepWhenWaitedFor(ctx context.Context, clock *clocktesting.FakeClock) {
	for ctx.Err() == nil {
		if clock.HasWaiters() {
			clock.Step(longestWait)
		}
		time.Sleep(time.Millisecond)
	}
}
