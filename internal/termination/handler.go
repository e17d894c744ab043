package termination

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// DefaultInterval is the polling interval that AWS recommends.
	DefaultInterval = 5 * time.Second
	// maxDelay bounds the backoff after errors, below the 30 seconds that Azure and Google leave an
	// instance.
	maxDelay = 15 * time.Second
	// markDelay and maxMarkDelay bound the backoff after a failure to mark the Node.
	markDelay, maxMarkDelay = time.Second, 15 * time.Second
	// recheck is how often a marked Node is read, in case it was recreated.
	recheck = time.Minute
	// lastLook bounds the last poll of the metadata service when the handler is stopped, and
	// lastMark the write to the Node. Together they fit into a Pod's 30 seconds. Google stops an
	// instance at the moment that it announces the termination.
	lastLook, lastMark = 3 * time.Second, 20 * time.Second
)

// Options configures a Handler.
type Options struct {
	Source Source
	Node   *Node
	// Interval is the polling interval; default DefaultInterval.
	Interval time.Duration
	// Clock defaults to the system clock.
	Clock  clock.Clock
	Logger logr.Logger
}

// Handler polls a source and marks its Node.
type Handler struct {
	Options
	errors reporter
}

// New returns a handler.
func New(o Options) *Handler {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Handler{Options: o, errors: reporter{clock: o.Clock, log: o.Logger}}
}

// Run polls until ctx ends. It then polls once more, since it may be stopped because its instance
// is. A handler whose Node is marked keeps running, so that its Pod is not restarted in a loop.
func (h *Handler) Run(ctx context.Context) {
	h.Logger.Info("Waiting for the cloud to announce the end of this instance", "interval", h.Interval.String())
	if h.watch(ctx) {
		h.guard(ctx)
		return
	}
	last := context.WithoutCancel(ctx)
	if h.lastLook(last) {
		within(last, lastMark, func(ctx context.Context) { h.mark(ctx) })
	}
}

// watch polls until the end is announced, which it reports, or ctx ends.
func (h *Handler) watch(ctx context.Context) bool {
	delay := h.Interval
	for ctx.Err() == nil {
		terminating, err := h.Source.Terminating(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			h.errors.failed(err)
			delay = min(2*delay, max(maxDelay, h.Interval))
		case terminating:
			return true
		default:
			h.errors.recovered()
			delay = h.Interval
		}
		sleep(ctx, h.Clock, delay)
	}
	return false
}

// guard marks the Node, and marks it again if it is recreated, until ctx ends. A missing mark then
// gets a last attempt.
func (h *Handler) guard(ctx context.Context) {
	h.Logger.Info("The cloud has announced the end of this instance")
	if !h.mark(ctx) {
		within(context.WithoutCancel(ctx), lastMark, func(ctx context.Context) { h.mark(ctx) })
		return
	}
	for sleep(ctx, h.Clock, recheck) {
		h.mark(ctx)
	}
}

// mark retries until the Node is marked, and reports whether it succeeded before ctx ended.
func (h *Handler) mark(ctx context.Context) bool {
	for delay := markDelay; ; delay = min(2*delay, maxMarkDelay) {
		written, err := h.Node.Mark(ctx)
		switch {
		case err == nil && written:
			h.Logger.Info("Marked the Node", "condition", ConditionType)
			fallthrough
		case err == nil:
			h.errors.recovered()
			return true
		case ctx.Err() == nil:
			h.errors.failed(err)
		}
		if !sleep(ctx, h.Clock, delay) {
			return false
		}
	}
}

// lastLook polls the source a last time.
func (h *Handler) lastLook(ctx context.Context) (terminating bool) {
	within(ctx, lastLook, func(ctx context.Context) {
		var err error
		if terminating, err = h.Source.Terminating(ctx); err != nil {
			h.errors.failed(err)
		}
	})
	return terminating
}

func within(ctx context.Context, limit time.Duration, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	do(ctx)
}

// sleep waits, and reports whether ctx has not ended.
func sleep(ctx context.Context, c clock.Clock, pause time.Duration) bool {
	timer := c.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return ctx.Err() == nil
	}
}
