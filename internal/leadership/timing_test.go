package leadership_test

import (
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/leadership"
)

func TestTiming(t *testing.T) {
	for name, tc := range map[string]struct {
		lease, renew, retry time.Duration
		want                leadership.Timing
		wantError           []string
	}{
		"the defaults are those of machine-api-operator": {
			lease: leadership.DefaultLease,
			want:  leadership.Timing{Lease: 137 * time.Second, Renew: 107 * time.Second, Retry: 26 * time.Second, Heartbeat: 10 * time.Second, Grace: 15 * time.Second},
		},
		"a shorter lease shortens the rest": {
			lease: 30 * time.Second,
			want:  leadership.Timing{Lease: 30 * time.Second, Renew: 23431 * time.Millisecond, Retry: 5693 * time.Millisecond, Heartbeat: 2189666666, Grace: 3284500 * time.Microsecond},
		},
		"what a flag says stands": {
			lease: 30 * time.Second, renew: 15 * time.Second, retry: 2 * time.Second,
			want: leadership.Timing{Lease: 30 * time.Second, Renew: 15 * time.Second, Retry: 2 * time.Second, Heartbeat: 5 * time.Second, Grace: 7500 * time.Millisecond},
		},
		"engines would live beside the next leader": {
			lease: 30 * time.Second, renew: 28 * time.Second,
			wantError: []string{"--leader-elect-lease-duration (30s)", "--leader-elect-renew-deadline (28s)", "at least 3s"},
		},
		"a deadline beyond the lease":         {lease: 30 * time.Second, renew: 40 * time.Second, wantError: []string{"--leader-elect-renew-deadline (40s)"}},
		"a leader would give up by one delay": {lease: 30 * time.Second, renew: 10 * time.Second, retry: 9 * time.Second, wantError: []string{"--leader-elect-retry-period (9s)"}},
		"a lease too short for heartbeats":    {lease: 6 * time.Second, wantError: []string{"--leader-elect-lease-duration (6s)"}},
		"a Lease counts seconds":              {lease: 30500 * time.Millisecond, wantError: []string{"invalid --leader-elect-lease-duration 30.5s", "whole seconds"}},
		"nothing is negative":                 {lease: 30 * time.Second, retry: -time.Second, wantError: []string{"--leader-elect-retry-period -1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := leadership.NewTiming(tc.lease, tc.renew, tc.retry)
			if (err != nil) != (tc.wantError != nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tc.wantError {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
			if err == nil && got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if err == nil && got.DeadAfter() > got.Lease {
				t.Errorf("engines live for %s, beyond the lease of %s", got.DeadAfter(), got.Lease)
			}
		})
	}
}

// A renewal that fails is tried again each retry period, and client-go begins to count the deadline
// at the first that fails. Whatever the moment at which the API server goes, one try comes after it
// is back and before the leader stops acting.
func TestTheDefaultsOutlastAMinuteWithoutAPIServer(t *testing.T) {
	timing, err := leadership.NewTiming(leadership.DefaultLease, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for gone := time.Duration(0); gone <= timing.Retry; gone += time.Second {
		next := timing.Retry
		for next <= gone+time.Minute {
			next += timing.Retry
		}
		if next >= timing.Renew {
			t.Errorf("gone %s after a renewal and for a minute, the API server is next tried after %s, beyond %s", gone, next, timing.Renew)
		}
	}
}
