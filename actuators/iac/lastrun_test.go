package iac

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// last returns what is recorded of a Machine's last run.
func (b *bench) last(machine *machinev1beta1.Machine) record.LastRun {
	b.t.Helper()
	snapshot, err := b.store.Get(b.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	got, err := record.ReadLastRun(snapshot.Meta)
	if err != nil || got == nil {
		b.t.Fatalf("no last run is recorded in %v: %v", snapshot.Meta, err)
	}
	return *got
}

func TestTheLastRunIsRecordedAtNoCost(t *testing.T) {
	b := newBench(t)
	writes := &atomic.Int32{}
	live, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	count := func(object client.Object) {
		if _, secret := object.(*corev1.Secret); secret {
			writes.Add(1)
		}
	}
	b.client = interceptor.NewClient(live, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			count(object)
			return c.Update(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			count(object)
			return c.Patch(ctx, object, patch, options...)
		},
	})
	b.start(shortdir.New(t), "owner-2")
	machine := b.machine()
	b.bring(machine)
	if got := b.last(machine); got.Operation != runs.Create || got.Result != record.RunSucceeded || got.Message != "" || got.Run == "" || got.Began.IsZero() || got.Ended.IsZero() {
		t.Errorf("after the create: %+v", got)
	}

	set(machine, b, "cpu", 8)
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Fatalf("Update: %v, want UnsupportedChange", err)
	}
	if got := b.last(machine); got.Operation != runs.Update || got.Result != record.RunFailed || !strings.Contains(got.Message, "cannot be made in place") {
		t.Errorf("after a change that is refused: %+v", got)
	}
	set(machine, b, "cpu", 4)
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}

	b.clock.SetTime(b.clock.Now().Add(2 * time.Hour)) // a drift check falls due
	before := writes.Load()
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for b.last(machine).Operation != runs.Drift {
		if time.Now().After(deadline) {
			t.Fatal("no drift check ends in time")
		}
		time.Sleep(pause)
	}
	if got := b.last(machine); got.Result != record.RunSucceeded {
		t.Errorf("after a drift check: %+v", got)
	}
	if cost := writes.Load() - before; cost != 2 {
		t.Errorf("a drift check that finds nothing costs %d writes, want 2: one takes the lock, one gives it back", cost)
	}
}

func TestWhatIsRecordedOfARunThatEnded(t *testing.T) {
	parallel(t)
	b := newBench(t)
	machine := b.machine()
	session, err := b.store.Acquire(t.Context(), state.KeyFor(machine.Namespace, machine.UID), state.AcquireOptions{
		Lock: state.Lock{Owner: "o", Run: "r", Operation: "create"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		outcome     error
		wantResult  string
		wantMessage string
	}{
		"a success":                {wantResult: record.RunSucceeded},
		"a failure":                {outcome: errors.New("no way"), wantResult: record.RunFailed, wantMessage: "no way"},
		"a manager that stops":     {outcome: errors.Join(errors.New("interrupted"), runs.ErrStopping), wantResult: record.RunInterrupted, wantMessage: "interrupted\nthe manager is stopping"},
		"a run that is not wanted": {outcome: errors.Join(errors.New("interrupted"), runs.ErrGivesWay), wantResult: record.RunInterrupted, wantMessage: "interrupted\nthe run is no longer wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&task{run: run{actuator: b.Actuator, decision: lifecycle.Decision{Operation: runs.Create}, id: "r"}, session: session}).lastRun(tc.outcome)
			if got.Result != tc.wantResult || got.Message != tc.wantMessage || got.Run != "r" || got.Operation != runs.Create {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}
