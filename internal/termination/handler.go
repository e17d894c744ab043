package termination

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// DefaultInterval is how often a metadata service is polled, as AWS recommends it.
	DefaultInterval = 5 * time.Second
	// maxDelay is the longest pause after errors, below the 30 seconds that Azure and Google leave an instance.
	maxDelay = 15 * time.Second
	// markDelay and maxMarkDelay are the first and the longest pause after the Node could not be marked.
	markDelay, maxMarkDelay = time.Second, 15 * time.Second
	// recheck is how often a marked Node is read, in case that it was made again.
	recheck = time.Minute
	// lastLook is how long the look at the metadata service may take when the handler is stopped, lastMark the write to the Node: together
	// less than the 30 seconds that a Pod has. Google stops an instance at the moment that it announces its termination.
	lastLook, lastMark = 3 * time.Second, 20 * time.Second
)

// Options are what a Handler needs.
type Options struct {
	// Source is polled.
	Source Source
	// Node is marked.
	Node *Node
	// Interval is how often the source is polled; DefaultInterval when zero.
	Interval time.Duration
	// Clock is the real one when nil.
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

// Run polls until ctx ends. Then it looks once more, since it may be stopped because the instance is. A handler whose Node is marked goes on,
// so that its Pod is not started again and again.
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

// guard marks the Node, and marks it again should it be made anew, until ctx ends. A mark that is not written by then gets a last chance.
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

// mark marks the Node, however often that takes, and reports whether it has before ctx ended.
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

// lastLook looks at the source a last time.
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
