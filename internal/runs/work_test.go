package runs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// reasoned is a script that has a reason.
type reasoned struct {
	*script
	reason string
}

// Reason implements Reasoner.
func (r reasoned) Reason() string { return r.reason }

// unsettled is a script that cannot record its outcome.
type unsettled struct {
	*script
	settle func(ctx context.Context, outcome error) error
}

func (u unsettled) Settle(ctx context.Context, outcome error) error { return u.settle(ctx, outcome) }

func TestARunWithNothingToDoEndsWell(t *testing.T) {
	log := &journal{}
	pool := New(Options{})
	start(t, pool)
	nothing := fmt.Errorf("the Machine is gone: %w", ErrNothingToDo)
	submit(t, pool, request("c", "", Create, &script{name: "c", log: log, intendErr: nothing}))
	expectWakes(t, pool, 1)
	if status, held := pool.Status("c"); held {
		t.Errorf("a create with nothing to do is still held: %+v", status)
	}
	submit(t, pool, request("d", "", Destroy, &script{name: "d", log: log, intendErr: nothing}))
	expectWakes(t, pool, 1)
	if status, _ := pool.Status("d"); status.Phase != Succeeded || status.Err != nil {
		t.Errorf("a destroy with nothing to do: %+v, want Succeeded", status)
	}
	if diff := cmp.Diff([]string{"c intend", "d intend"}, log.all()); diff != "" {
		t.Error(diff)
	}
}

func TestTheReasonOfARunIsShown(t *testing.T) {
	pool := New(Options{})
	start(t, pool)
	runs := &script{name: "m", log: &journal{}, block: make(chan struct{}), started: make(chan struct{}), outcome: errors.New("no")}
	submit(t, pool, request("m", "", Update, reasoned{runs, "the providerSpec has changed"}))
	<-runs.started
	if status, _ := pool.Status("m"); status.Reason != "the providerSpec has changed" {
		t.Errorf("reason %q while it runs", status.Reason)
	}
	close(runs.block)
	expectWakes(t, pool, 1)
	if status, _ := pool.Status("m"); status.Reason != "the providerSpec has changed" {
		t.Errorf("reason %q after it failed", status.Reason)
	}
	refused := &script{name: "r", log: &journal{}, intendErr: errors.New("locked")}
	submit(t, pool, request("r", "", Update, reasoned{refused, "the state is locked"}))
	expectWakes(t, pool, 1)
	if status, _ := pool.Status("r"); status.Reason != "the state is locked" {
		t.Errorf("reason %q after its intent failed", status.Reason)
	}
}

func TestARunThatIsNotSettledSaysSo(t *testing.T) {
	no := errors.New("no")
	for name, tc := range map[string]struct {
		outcome error
		settle  func(ctx context.Context, outcome error) error
		want    bool
	}{
		"an outcome that is recorded":           {no, func(_ context.Context, outcome error) error { return outcome }, false},
		"a success that could not be recorded":  {nil, func(context.Context, error) error { return no }, true},
		"a failure that could not be recorded":  {errors.New("other"), func(context.Context, error) error { return NotSettled(no) }, true},
		"a record that took too long":           {no, func(ctx context.Context, _ error) error { <-ctx.Done(); return no }, true},
		"a panic after the intent was recorded": {nil, func(context.Context, error) error { panic("no") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			pool := New(Options{BookkeepingTimeout: 50 * time.Millisecond})
			start(t, pool)
			submit(t, pool, request("m", "", Create, unsettled{&script{name: "m", log: &journal{}, outcome: tc.outcome}, tc.settle}))
			expectWakes(t, pool, 1)
			status, _ := pool.Status("m")
			if status.Phase != Failed || errors.Is(status.Err, ErrNotSettled) != tc.want {
				t.Errorf("%s with error %v, want Failed, not settled: %t", status.Phase, status.Err, tc.want)
			}
			if name != "a panic after the intent was recorded" && !errors.Is(status.Err, no) {
				t.Errorf("error %v lacks its cause", status.Err)
			}
		})
	}
}

func TestAWaitingRunIsCancelledAndARunningOneIsNot(t *testing.T) {
	log, metrics := &journal{}, NewMetrics("e")
	pool := New(Options{MaxConcurrent: 1, Metrics: metrics})
	runs := &script{name: "runs", log: log, block: make(chan struct{}), started: make(chan struct{})}
	for name, task := range map[string]*script{"runs": runs, "waits": {name: "waits", log: log}} {
		r := request(name, "", Create, task)
		if r.Engine = "e"; name == "waits" {
			r.Operation = Update
		}
		submit(t, pool, r)
	}
	start(t, pool)
	<-runs.started
	if status, cancelled := pool.Cancel("runs"); cancelled {
		t.Errorf("cancelled a running run: %+v", status)
	}
	if _, cancelled := pool.Cancel("unknown"); cancelled {
		t.Error("cancelled a run that there is not")
	}
	if status, cancelled := pool.Cancel("waits"); !cancelled || status.Operation != Update || status.Phase != Queued {
		t.Errorf("cancelling a waiting update: %t, %+v", cancelled, status)
	}
	if waiting, _ := depths(t, metrics, "e", Update); waiting != 0 {
		t.Errorf("%v updates wait after it was cancelled", waiting)
	}
	if status, held := pool.Status("waits"); held {
		t.Errorf("a cancelled run is held: %+v", status)
	}
	close(runs.block)
	expectWakes(t, pool, 1)
	if diff := cmp.Diff([]string{"runs intend", "runs execute", "runs settle false"}, log.all()); diff != "" {
		t.Error(diff)
	}
}

func TestARunThatUsesUpItsDeadlineGetsShorterOnesAndNowAndThenTheWhole(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	pool := New(Options{Clock: clock, Deadline: 30 * time.Minute})
	try := func(fingerprint string, err error, timedOut bool) time.Duration {
		t.Helper()
		r := request("m", "", Create, &script{})
		r.Fingerprint = fingerprint
		status := submit(t, pool, r)
		if status.Phase != Queued {
			t.Fatalf("%+v, want Queued", status)
		}
		pool.finish(pool.admit(), err, timedOut)
		status, _ = pool.Status("m")
		clock.SetTime(clock.Now().Add(10 * time.Minute))
		return status.Deadline
	}
	no := errors.New("no")
	var got []time.Duration
	for range 6 {
		got = append(got, try("f", no, true)/time.Second)
	}
	got = append(got, try("f", no, false)/time.Second, try("f", no, true)/time.Second)
	got = append(got, try("other", no, true)/time.Second, try("other", no, true)/time.Second)
	try("other", nil, false)
	got = append(got, try("other", no, false)/time.Second)
	if diff := cmp.Diff([]time.Duration{1800, 900, 450, 300, 1800, 900, 450, 450, 1800, 900, 1800}, got); diff != "" {
		t.Error(diff)
	}
	short := request("short", "", Create, &script{})
	short.Deadline = time.Minute
	if status := submit(t, pool, short); status.Deadline != time.Minute {
		t.Errorf("deadline %s, want the request's own", status.Deadline)
	}
}

func TestADeadlineThatIsUsedUpIsCounted(t *testing.T) {
	pool := New(Options{RetryBase: time.Nanosecond, RetryMax: time.Nanosecond, MinDeadline: time.Millisecond})
	start(t, pool)
	for _, want := range []time.Duration{20 * time.Millisecond, 10 * time.Millisecond} {
		r := request("m", "", Create, &script{name: "m", log: &journal{}, block: make(chan struct{})})
		r.Deadline = 20 * time.Millisecond
		if status := submit(t, pool, r); status.Deadline != want {
			t.Errorf("deadline %s, want %s", status.Deadline, want)
		}
		expectWakes(t, pool, 1)
	}
}

func TestAbortEndsEverythingAtOnce(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 1})
	settling, release := make(chan error, 1), make(chan struct{})
	stubborn := unsettled{
		&script{name: "stubborn", log: log, block: make(chan struct{}), started: make(chan struct{})},
		func(ctx context.Context, outcome error) error {
			settling <- errors.Join(context.Cause(ctx), outcome)
			<-release
			return outcome
		},
	}
	submit(t, pool, request("stubborn", "", Create, stubborn))
	submit(t, pool, request("waits", "", Create, &script{name: "waits", log: log}))
	ended := make(chan error, 1)
	go func() { ended <- pool.Start(t.Context()) }()
	<-stubborn.started
	pool.Abort()
	pool.Abort()
	if err := <-ended; !errors.Is(err, ErrNotLeader) {
		t.Errorf("the pool ended with %v, want %v, without waiting for a run that does not settle", err, ErrNotLeader)
	}
	if err := <-settling; !errors.Is(err, ErrNotLeader) {
		t.Errorf("settled with %v, want a context and an outcome that end by %v", err, ErrNotLeader)
	}
	close(release)
	pool.workers.Wait()
	if status, _ := pool.Status("stubborn"); !errors.Is(status.Err, ErrNotLeader) || !errors.Is(status.Err, ErrNotSettled) {
		t.Errorf("outcome %v, want %v and %v", status.Err, ErrNotLeader, ErrNotSettled)
	}
	if _, err := pool.Submit(request("late", "", Create, &script{})); !errors.Is(err, ErrNotLeader) {
		t.Errorf("submitting after an abort: %v, want %v", err, ErrNotLeader)
	}
	if diff := cmp.Diff([]string{"stubborn intend", "stubborn execute"}, log.all()); diff != "" {
		t.Error(diff)
	}
}

func TestAbortWhileStoppingAndBeforeTheStart(t *testing.T) {
	pool := New(Options{})
	release := make(chan struct{})
	slow := unsettled{&script{name: "slow", log: &journal{}, started: make(chan struct{})}, func(ctx context.Context, _ error) error {
		<-ctx.Done()
		<-release
		return ctx.Err()
	}}
	submit(t, pool, request("slow", "", Create, slow))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pool.Start(ctx) }()
	<-slow.started
	cancel()
	for {
		if _, err := pool.Submit(request("late", "", Create, &script{log: &journal{}})); errors.Is(err, ErrStopping) {
			break
		}
	}
	pool.Abort()
	if err := <-ended; !errors.Is(err, ErrNotLeader) {
		t.Errorf("a pool that was stopping ended with %v, want %v", err, ErrNotLeader)
	}
	close(release)
	pool.workers.Wait()
	pool.stop(ErrStopping)
	if _, err := pool.Submit(request("late", "", Create, &script{})); !errors.Is(err, ErrNotLeader) {
		t.Errorf("submitting to a pool that was aborted and then stopped: %v, want %v", err, ErrNotLeader)
	}

	early := New(Options{})
	submit(t, early, request("m", "", Create, &script{}))
	early.Abort()
	if err := early.Start(t.Context()); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a pool that was aborted before its start ended with %v, want %v", err, ErrNotLeader)
	}
}
