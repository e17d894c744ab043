package main

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
)

// maxWarnings bounds the texts that are remembered.
const maxWarnings = 1000

// warnings logs each warning of the API server once.
type warnings struct {
	logger logr.Logger
	mu     sync.Mutex
	seen   map[string]bool
}

func newWarnings(logger logr.Logger) *warnings {
	return &warnings{logger: logger, seen: map[string]bool{}}
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[text] || len(w.seen) >= maxWarnings {
		return
	}
	w.seen[text] = true
	w.logger.Info("The API server warns", "warning", text)
}
