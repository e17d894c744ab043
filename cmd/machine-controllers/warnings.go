package main

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// maxWarnings bounds the remembered texts; the least recently used is dropped first.
	maxWarnings = 1000
	// warnAgain is how often a recurring text is logged.
	warnAgain = time.Hour
)

// warnings logs each warning of the API server at most once an hour. Admission warns at each write
// of an object, and all Machines of a MachineSet cause the same warning.
type warnings struct {
	logger logr.Logger
	clock  clock.PassiveClock

	mu     sync.Mutex
	logged *lru.Cache
}

func newWarnings(logger logr.Logger, now clock.PassiveClock) *warnings {
	return &warnings{logger: logger, clock: now, logged: lru.New(maxWarnings)}
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext. The logger of a
// reconcile names the object that caused the first warning.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _ string, text string) {
	if !w.fresh(text) {
		return
	}
	logger := w.logger
	if own, err := logr.FromContext(ctx); err == nil {
		logger = own.WithName("api-server")
	}
	logger.Info("Warning from the API server", "warning", text)
}

// fresh reports whether a text was not logged within warnAgain, and records it.
func (w *warnings) fresh(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if last, known := w.logged.Get(text); known {
		if at, ok := last.(time.Time); ok && now.Sub(at) < warnAgain {
			return false
		}
	}
	w.logged.Add(text, now)
	return true
}
