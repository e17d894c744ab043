//go:build bench

package bench

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// interrupted ends when somebody has had enough. Tests then fail, and clean up as they do at any end.
var interrupted context.Context

func TestMain(m *testing.M) {
	var stop func()
	interrupted, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := m.Run()
	stop()
	os.Exit(code)
}

// contextOf returns the test's context, which ends with an interrupt too.
func contextOf(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := context.AfterFunc(interrupted, func() { cancel(context.Cause(interrupted)) })
	t.Cleanup(func() { stop() })
	return ctx
}

// pause waits.
func pause(t *testing.T, duration time.Duration) {
	t.Helper()
	ctx := contextOf(t)
	select {
	case <-ctx.Done():
		t.Fatal(context.Cause(ctx))
	case <-time.After(duration):
	}
}
