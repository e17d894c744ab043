package cluster

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestWhatWasLastSaidIsNoneOfTheEndOfTheWait(t *testing.T) {
	var asked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Swap(true) {
			<-r.Context().Done() // until the client is gone
			return
		}
		http.Error(w, "reading the log", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := waitReady(ctx, server.Client(), server.URL, started{exited: make(chan error)})
	if err == nil || !strings.Contains(err.Error(), "reading the log") {
		t.Errorf("waitReady returns %v, want what was said last", err)
	}
}
