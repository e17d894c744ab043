package runs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// script is a task that reports what the pool does with it and ends when its test says so.
type script struct {
	name      string
	log       *journal
	intendErr error
	outcome   error
	block     chan struct{}
	started   chan struct{}
}

type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string{}, j.lines...)
}

func (s *script) Intend(context.Context) error {
	s.log.add("%s intend", s.name)
	return s.intendErr
}

func (s *script) Execute(ctx context.Context) error {
	s.log.add("%s execute", s.name)
	if s.started != nil {
		close(s.started)
	}
	if s.block != nil {
		select {
		case <-s.block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.outcome
}

func (s *script) Settle(ctx context.Context, outcome error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("settling under a dead context: %w", ctx.Err())
	}
	s.log.add("%s settle %v", s.name, outcome != nil)
	return outcome
}

func request(name, group string, operation Operation, task Task) Request {
	return Request{
		Machine: types.NamespacedName{Namespace: "ns", Name: name}, Key: Key(name),
		Group: group, Operation: operation, Fingerprint: "f", Task: task,
	}
}

func start(t *testing.T, pool *Pool) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pool.Start(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stopping the pool: %v", err)
		}
	})
	return stop
}

func expectWakes(t *testing.T, pool *Pool, count int) []string {
	t.Helper()
	var names []string
	for range count {
		select {
		case woken := <-pool.Events():
			names = append(names, woken.Object.GetName())
		case <-time.After(10 * time.Second):
			t.Fatalf("woken %v, want %d Machines", names, count)
		}
	}
	return names
}

func submit(t *testing.T, pool *Pool, r Request) Status {
	t.Helper()
	status, err := pool.Submit(r)
	if err != nil {
		t.Fatalf("submitting %s: %v", r.Key, err)
	}
	return status
}

func TestARunIsIntendedExecutedSettledAndWakesItsMachine(t *testing.T) {
	log := &journal{}
	pool := New(Options{})
	start(t, pool)
	submit(t, pool, request("m", "", Create, &script{name: "m", log: log}))
	expectWakes(t, pool, 1)
	if diff := cmp.Diff([]string{"m intend", "m execute", "m settle false"}, log.all()); diff != "" {
		t.Error(diff)
	}
	if status, held := pool.Status("m"); held {
		t.Errorf("a run that succeeded is still held: %+v", status)
	}
}

func TestNothingIsExecutedWithoutAnIntent(t *testing.T) {
	log := &journal{}
	pool := New(Options{})
	start(t, pool)
	submit(t, pool, request("m", "", Create, &script{name: "m", log: log, intendErr: errors.New("locked")}))
	expectWakes(t, pool, 1)
	if diff := cmp.Diff([]string{"m intend"}, log.all()); diff != "" {
		t.Error(diff)
	}
	if status, _ := pool.Status("m"); status.Phase != Failed || status.Err == nil {
		t.Errorf("status %+v, want Failed with its error", status)
	}
}

func TestWaitingRunsStartByPrecedenceAndInTurnsBetweenGroups(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 1})
	for _, r := range []struct {
		name, group string
		operation   Operation
	}{
		{"drift", "a", Drift}, {"a1", "a", Create}, {"a2", "a", Create}, {"a3", "a", Create},
		{"b1", "b", Create}, {"update", "b", Update}, {"destroy", "b", Destroy},
	} {
		submit(t, pool, request(r.name, r.group, r.operation, &script{name: r.name, log: log}))
	}
	start(t, pool)
	want := []string{"destroy", "a1", "b1", "a2", "a3", "update", "drift"}
	expectWakes(t, pool, len(want)) // in any order: a run's Machine is woken when the next run may have begun
	var began []string
	for _, entry := range log.all() {
		if name, ok := strings.CutSuffix(entry, " execute"); ok {
			began = append(began, name)
		}
	}
	if diff := cmp.Diff(want, began); diff != "" {
		t.Error(diff)
	}
}

func TestAMachineHasOneRun(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 1})
	blocker := &script{name: "blocker", log: log, block: make(chan struct{}), started: make(chan struct{})}
	submit(t, pool, request("blocker", "", Create, blocker))
	start(t, pool)
	<-blocker.started

	if status := submit(t, pool, request("blocker", "", Destroy, &script{})); status.Operation != Create || status.Phase != Running {
		t.Errorf("a destroy beside a running create: %+v, want the running create", status)
	}
	submit(t, pool, request("m", "", Create, &script{name: "create", log: log}))
	if status := submit(t, pool, request("m", "", Update, &script{})); status.Operation != Create {
		t.Errorf("an update beside a waiting create: %+v, want the create", status)
	}
	if status := submit(t, pool, request("m", "", Destroy, &script{name: "destroy", log: log})); status.Operation != Destroy {
		t.Errorf("a destroy beside a waiting create: %+v, want the destroy", status)
	}
	close(blocker.block)
	expectWakes(t, pool, 2)
	for _, line := range log.all() {
		if line == "create execute" {
			t.Error("the create ran although a destroy had taken its place")
		}
	}
}

func TestAFailedRunIsRepeatedAfterAGrowingPauseOrAtOnceForAnotherFingerprint(t *testing.T) {
	log := &journal{}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	pool := New(Options{Clock: clock, RetryBase: time.Second, RetryMax: 3 * time.Second})
	start(t, pool)
	fail := func(fingerprint string) Request {
		r := request("m", "", Create, &script{name: fingerprint, log: log, outcome: errors.New("no")})
		r.Fingerprint = fingerprint
		return r
	}
	for i, wantPause := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		submit(t, pool, fail("f"))
		expectWakes(t, pool, 1)
		status, _ := pool.Status("m")
		if got := status.RetryAt.Sub(clock.Now()); got != wantPause || status.Failures != i+1 {
			t.Fatalf("failure %d: pause %s, failures %d; want %s", i+1, got, status.Failures, wantPause)
		}
		if status := submit(t, pool, fail("f")); status.Phase != Failed {
			t.Fatalf("a run within its pause: %+v, want Failed", status)
		}
		clock.SetTime(status.RetryAt)
	}
	submit(t, pool, fail("f"))
	expectWakes(t, pool, 1)
	if status := submit(t, pool, fail("other")); status.Phase == Failed || status.Failures != 0 {
		t.Errorf("another fingerprint within the pause: %+v, want a fresh run", status)
	}
	expectWakes(t, pool, 1)
}

func TestARunBetweenTheTriesOfAnotherLeavesItsPauseAlone(t *testing.T) {
	log := &journal{}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	pool := New(Options{Clock: clock, RetryBase: time.Minute, RetryMax: time.Hour})
	start(t, pool)
	run := func(operation Operation, outcome error, wantPhase Phase, wantFailures int) {
		t.Helper()
		asked := request("m", "", operation, &script{name: string(operation), log: log, outcome: outcome})
		asked.Between = operation == Drift
		got := submit(t, pool, asked)
		if started := got.Phase != Failed; started {
			expectWakes(t, pool, 1)
			got, _ = pool.Status("m")
		}
		if got.Phase != wantPhase || got.Failures != wantFailures {
			t.Fatalf("%s: %+v, want phase %q after %d failures", operation, got, wantPhase, wantFailures)
		}
	}
	no := errors.New("no")
	run(Update, no, Failed, 1)
	run(Drift, nil, Failed, 1) // what stays is the failed update
	run(Drift, no, Failed, 1)
	run(Update, no, Failed, 1) // held back
	run(Drift, no, Failed, 1)  // held back, too
	if ran := len(log.all()); ran != 9 {
		t.Errorf("the pool did %q, want one update and two drift checks", log.all())
	}
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	run(Update, no, Failed, 2)
	run(Drift, no, Failed, 2)
	run(Drift, no, Failed, 2) // held back
	clock.SetTime(clock.Now().Add(5 * time.Minute))
	run(Update, nil, "", 0)
	run(Drift, nil, "", 0)
	if status, known := pool.Status("m"); known {
		t.Errorf("the pool remembers %+v of a Machine whose runs have succeeded", status)
	}
}

func TestARunThatIsToBeRepeatedSoonIsRepeatedWithinHalfAMinute(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	pool := New(Options{Clock: clock})
	start(t, pool)
	var longest time.Duration
	for range 10 {
		submit(t, pool, request("m", "", Create, &script{name: "m", log: &journal{}, outcome: RetrySoon(errors.New("no provider"))}))
		expectWakes(t, pool, 1)
		status, _ := pool.Status("m")
		longest = max(longest, status.RetryAt.Sub(clock.Now()))
		clock.SetTime(status.RetryAt)
	}
	if longest != 30*time.Second {
		t.Errorf("the longest pause is %s, want 30s", longest)
	}
}

func TestStoppingCancelsWhatRunsSettlesItAndDropsWhatWaits(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 1})
	runs := &script{name: "runs", log: log, block: make(chan struct{}), started: make(chan struct{})}
	submit(t, pool, request("runs", "", Create, runs))
	submit(t, pool, request("waits", "", Create, &script{name: "waits", log: log}))
	stop := start(t, pool)
	<-runs.started
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"runs intend", "runs execute", "runs settle true"}, log.all()); diff != "" {
		t.Error(diff)
	}
	if status, _ := pool.Status("runs"); !errors.Is(status.Err, ErrStopping) {
		t.Errorf("outcome %v, want it to be %v", status.Err, ErrStopping)
	}
	if _, err := pool.Submit(request("late", "", Create, &script{})); !errors.Is(err, ErrStopping) {
		t.Errorf("submitting to a stopped pool: %v, want %v", err, ErrStopping)
	}
}

// finishing is a task that is finishing until its test says otherwise.
type finishing struct {
	*script
	over atomic.Bool
}

func (f *finishing) Finishing() bool { return !f.over.Load() }

func TestStoppingLetsTasksFinishWithinTheGracePeriod(t *testing.T) {
	for name, tc := range map[string]struct {
		grace   time.Duration
		finish  bool
		over    bool
		settles string
	}{
		"one that finishes in time":          {grace: time.Minute, finish: true, settles: "settle false"},
		"one that does not":                  {grace: 50 * time.Millisecond, settles: "settle true"},
		"one that is not finishing any more": {grace: time.Minute, over: true, settles: "settle true"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &journal{}
			pool := New(Options{MaxConcurrent: 1, StopGrace: tc.grace})
			task := &finishing{script: &script{name: "runs", log: log, block: make(chan struct{}), started: make(chan struct{})}}
			task.over.Store(tc.over)
			submit(t, pool, request("runs", "", Create, task))
			submit(t, pool, request("waits", "", Create, &script{name: "waits", log: log}))
			stop := start(t, pool)
			<-task.started
			if tc.finish {
				time.AfterFunc(50*time.Millisecond, func() { close(task.block) })
			}
			began := time.Now()
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"runs intend", "runs execute", "runs " + tc.settles}, log.all()); diff != "" {
				t.Error(diff)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("stopping took %s", took)
			}
		})
	}
}

func TestARunEndsAtItsDeadline(t *testing.T) {
	log := &journal{}
	pool := New(Options{})
	start(t, pool)
	r := request("m", "", Create, &script{name: "m", log: log, block: make(chan struct{})})
	r.Deadline = 10 * time.Millisecond
	submit(t, pool, r)
	expectWakes(t, pool, 1)
	if status, _ := pool.Status("m"); !errors.Is(status.Err, ErrDeadline) {
		t.Errorf("outcome %v, want it to be %v", status.Err, ErrDeadline)
	}
}

func TestAPanicIsTheRunsErrorAndTheWorkerGoesOn(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 1})
	start(t, pool)
	submit(t, pool, request("bad", "", Create, nil))
	submit(t, pool, request("good", "", Create, &script{name: "good", log: log}))
	expectWakes(t, pool, 2)
	if status, _ := pool.Status("bad"); status.Err == nil {
		t.Error("a run that panicked has no error")
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	pool := New(Options{MaxQueued: 1})
	submit(t, pool, request("a", "", Create, &script{}))
	if _, err := pool.Submit(request("b", "", Create, &script{})); !errors.Is(err, ErrQueueFull) {
		t.Errorf("a run too many: %v, want %v", err, ErrQueueFull)
	}
	if status := submit(t, pool, request("a", "", Create, &script{})); status.Phase != Queued {
		t.Errorf("a Machine whose run waits already: %+v, want that run", status)
	}
}

func TestADestroyThatSucceededIsRememberedForAWhile(t *testing.T) {
	log := &journal{}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	pool := New(Options{Clock: clock})
	start(t, pool)
	submit(t, pool, request("gone", "", Destroy, &script{name: "gone", log: log}))
	expectWakes(t, pool, 1)
	if status, _ := pool.Status("gone"); status.Phase != Succeeded {
		t.Fatalf("status %+v, want Succeeded", status)
	}
	clock.SetTime(clock.Now().Add(2 * retention))
	submit(t, pool, request("other", "", Create, &script{name: "other", log: log}))
	expectWakes(t, pool, 1)
	if status, held := pool.Status("gone"); held {
		t.Errorf("still held after the retention: %+v", status)
	}
}

func TestDriftChecksLeaveWorkersToOthers(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 2, MaxConcurrentDrift: 1})
	block := make(chan struct{})
	for _, name := range []string{"d1", "d2"} {
		submit(t, pool, request(name, "", Drift, &script{name: name, log: log, block: block}))
	}
	start(t, pool)
	submit(t, pool, request("c", "", Create, &script{name: "c", log: log}))
	if woken := expectWakes(t, pool, 1); woken[0] != "c" {
		t.Errorf("woken %v first, want c", woken)
	}
	if status, _ := pool.Status("d2"); status.Phase != Queued {
		t.Errorf("second drift check is %s, want Queued", status.Phase)
	}
	close(block)
	expectWakes(t, pool, 2)
}

func TestAThousandMachinesOfManyGroupsAllRunOnce(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 8})
	start(t, pool)
	for i := range 1000 {
		name := fmt.Sprintf("m%d", i)
		submit(t, pool, request(name, fmt.Sprintf("g%d", i%7), precedence[i%4], &script{name: name, log: log}))
	}
	expectWakes(t, pool, 1000)
	if got := len(log.all()); got != 3000 {
		t.Errorf("%d steps, want 3000", got)
	}
}
