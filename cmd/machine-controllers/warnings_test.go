package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"
)

func TestWarningsAreLoggedOnceForAWhile(t *testing.T) {
	begun := time.Unix(1e9, 0)
	var lines []string
	heard := func(prefix, args string) { lines = append(lines, strings.TrimSpace(prefix+" "+args)) }
	now := testclock.NewFakePassiveClock(begun)
	w := newWarnings(funcr.New(heard, funcr.Options{}), now)
	reconcile := logr.NewContext(t.Context(), funcr.New(heard, funcr.Options{}).WithValues("Machine", "a"))
	hear := func(ctx context.Context, after time.Duration, text string) {
		now.SetTime(begun.Add(after))
		w.HandleWarningHeaderWithContext(ctx, 299, "-", text)
	}
	logged := func(text string) string {
		return fmt.Sprintf(`"level"=0 "msg"="Warning from the API server" "warning"=%q`, text)
	}

	hear(reconcile, 0, "unknown field")
	hear(t.Context(), time.Minute, "unknown field")
	hear(t.Context(), time.Minute, "deprecated")
	hear(t.Context(), warnAgain-time.Second, "unknown field")
	hear(t.Context(), warnAgain, "unknown field")
	hear(t.Context(), warnAgain+time.Second, "unknown field")
	want := []string{
		`api-server "level"=0 "msg"="Warning from the API server" "Machine"="a" "warning"="unknown field"`, logged("deprecated"), logged("unknown field"),
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}

func TestWarningsForgetTheOldest(t *testing.T) {
	w := newWarnings(logr.Discard(), testclock.NewFakePassiveClock(time.Unix(1e9, 0)))
	for i := range maxWarnings + 1 {
		if !w.fresh(fmt.Sprint(i)) {
			t.Fatalf("warning %d was never heard before", i)
		}
	}
	if w.logged.Len() != maxWarnings {
		t.Errorf("%d texts are remembered, want %d", w.logged.Len(), maxWarnings)
	}
	if w.fresh(fmt.Sprint(maxWarnings)) || !w.fresh("0") {
		t.Error("the newest is to be remembered, the oldest forgotten")
	}
}
