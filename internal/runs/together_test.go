package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// joined is a script that can be executed together with others.
type joined struct {
	*script
	together func(ctx context.Context, others []Task) []error
}

func (j joined) ExecuteTogether(ctx context.Context, others []Task) []error {
	names := []string{j.name}
	for _, other := range others {
		names = append(names, other.(joined).name)
	}
	j.log.add("together %s", strings.Join(names, " "))
	return j.together(ctx, others)
}

// check is a request for a drift check with a batch.
func check(name, group, batch string, task Task) Request {
	r := request(name, group, Drift, task)
	r.Batch = batch
	return r
}

func all(outcome error) func(context.Context, []Task) []error {
	return func(_ context.Context, others []Task) []error {
		return slices.Repeat([]error{outcome}, len(others)+1)
	}
}

func TestRunsThatMayBeExecutedTogetherAre(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 1, MaxBatch: 3})
	for _, r := range []struct{ name, group, batch string }{
		{"a", "g", "x"}, {"b", "g", "y"}, {"c", "g", "x"}, {"d", "h", "x"}, {"e", "g", "x"}, {"f", "g", "x"}, {"g", "g", ""}, {"h", "g", ""},
	} {
		submit(t, pool, check(r.name, r.group, r.batch, joined{&script{name: r.name, log: log}, all(nil)}))
	}
	start(t, pool)
	expectWakes(t, pool, 8)
	var began []string
	for _, line := range log.all() {
		if strings.HasSuffix(line, "execute") || strings.HasPrefix(line, "together") {
			began = append(began, line)
		}
	}
	if diff := cmp.Diff([]string{"together a c e", "d execute", "b execute", "f execute", "g execute", "h execute"}, began); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"a", "c", "e"} {
		if lines := log.all(); !slices.Contains(lines, name+" intend") || !slices.Contains(lines, name+" settle false") || slices.Contains(lines, name+" execute") {
			t.Errorf("%s has no intent or settlement of its own, or was executed twice: %q", name, lines)
		}
	}
	if left := pool.queue.waiting + pool.queue.running + len(pool.runs); left != 0 {
		t.Errorf("%d runs are left", left)
	}
}

func TestWhatIsToBeExecutedAloneWaitsAgain(t *testing.T) {
	log := &journal{}
	metrics := NewMetrics()
	pool := New(Options{MaxConcurrent: 1, MaxBatch: 9, Metrics: metrics})
	outcomes := func(context.Context, []Task) []error { return []error{nil, ErrAlone, errors.New("refused"), ErrAlone} }
	for _, name := range []string{"a", "b", "c", "d"} {
		submit(t, pool, check(name, "g", "x", joined{&script{name: name, log: log}, outcomes}))
	}
	submit(t, pool, check("other", "h", "", &script{name: "other", log: log}))
	start(t, pool)
	expectWakes(t, pool, 5)
	var alone []string
	for _, line := range log.all() {
		if strings.HasSuffix(line, "execute") {
			alone = append(alone, line)
		}
	}
	if diff := cmp.Diff([]string{"other execute", "b execute", "d execute"}, alone); diff != "" {
		t.Errorf("executed alone, in the order of their turns (-want +got):\n%s", diff)
	}
	if status, _ := pool.Status("c"); status.Phase != Failed || status.Failures != 1 {
		t.Errorf("status %+v, want one that failed to have failed", status)
	}
	counted := gaugesOf(t, metrics, "", Drift)
	if got := counted["machine_iac_run_duration_seconds"]; got != 5 {
		t.Errorf("%v runs are counted to have ended, want each once: 5", got)
	}
	for _, gauge := range []string{"machine_iac_runs_running", "machine_iac_runs_queued"} {
		if counted[gauge] != 0 {
			t.Errorf("%s is %v in the end", gauge, counted[gauge])
		}
	}
}

func TestARunThatHasFailedIsExecutedAlone(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 1, MaxBatch: 9, RetryBase: time.Nanosecond, RetryMax: time.Nanosecond})
	failing := joined{&script{name: "a", log: log, intendErr: errors.New("locked")}, all(nil)}
	submit(t, pool, check("a", "g", "x", failing))
	start(t, pool)
	expectWakes(t, pool, 1)
	blocker := &script{name: "blocker", log: log, block: make(chan struct{}), started: make(chan struct{})}
	submit(t, pool, request("blocker", "g", Destroy, blocker))
	<-blocker.started
	for _, name := range []string{"a", "b", "c"} {
		submit(t, pool, check(name, "g", "x", joined{&script{name: name, log: log}, all(nil)}))
	}
	close(blocker.block)
	expectWakes(t, pool, 4)
	if lines := log.all(); !slices.Contains(lines, "a execute") || !slices.Contains(lines, "together b c") {
		t.Errorf("%q, want the one that failed alone", lines)
	}
}

func TestNothingInABatchIsInTheWayOfTheOthers(t *testing.T) {
	hang := func(ctx context.Context, others []Task) []error {
		<-ctx.Done()
		return slices.Repeat([]error{context.Cause(ctx)}, len(others)+1)
	}
	for name, tc := range map[string]struct {
		intendErr error
		together  func(context.Context, []Task) []error
		panics    bool
		want      []string
	}{
		"one that has nothing to do":        {intendErr: ErrNothingToDo, together: all(nil), want: []string{"together b c"}},
		"one that cannot take its lock":     {intendErr: errors.New("locked"), together: all(nil), want: []string{"together b c"}},
		"one that panics":                   {panics: true, together: all(nil), want: []string{"together b c"}},
		"an execution that panics":          {together: func(context.Context, []Task) []error { panic("no") }, want: []string{"together a b c", "a execute", "b execute", "c execute"}},
		"one that returns too few outcomes": {together: func(context.Context, []Task) []error { return nil }, want: []string{"together a b c", "a execute", "b execute", "c execute"}},
		"one that uses up its deadline": {together: func(ctx context.Context, others []Task) []error {
			hang(ctx, others)
			return slices.Repeat([]error{ErrAlone}, len(others)+1)
		}, want: []string{"together a b c", "a execute", "b execute", "c execute"}},
	} {
		t.Run(name, func(t *testing.T) {
			log := &journal{}
			pool := New(Options{MaxConcurrent: 1, MaxBatch: 9, Deadline: 50 * time.Millisecond, MinDeadline: 50 * time.Millisecond})
			for _, member := range []string{"a", "b", "c"} {
				s := &script{name: member, log: log}
				var task Task = joined{s, tc.together}
				if member == "a" {
					s.intendErr = tc.intendErr
				}
				if member == "a" && tc.panics {
					task = panicking{joined{s, tc.together}}
				}
				submit(t, pool, check(member, "g", "x", task))
			}
			start(t, pool)
			expectWakes(t, pool, 3)
			var got []string
			for _, line := range log.all() {
				if strings.HasPrefix(line, "together") || strings.HasSuffix(line, "execute") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if pool.queue.running != 0 || pool.queue.waiting != 0 {
				t.Errorf("%d run and %d wait in the end", pool.queue.running, pool.queue.waiting)
			}
		})
	}
}

// panicking panics as soon as it is to do something.
type panicking struct{ joined }

func (panicking) Intend(context.Context) error { panic("no") }

func TestAPoolThatIsStoppedEndsItsBatches(t *testing.T) {
	for name, abort := range map[string]bool{"stopped": false, "aborted": true} {
		t.Run(name, func(t *testing.T) {
			log := &journal{}
			pool := New(Options{MaxConcurrent: 1, MaxBatch: 9})
			entered := make(chan struct{})
			var settled atomic.Int32
			for _, member := range []string{"a", "b"} {
				task := joined{&script{name: member, log: log}, func(ctx context.Context, others []Task) []error {
					close(entered)
					<-ctx.Done()
					return slices.Repeat([]error{ErrAlone}, len(others)+1)
				}}
				submit(t, pool, check(member, "g", "x", counting{task, &settled}))
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- pool.Start(ctx) }()
			<-entered
			if abort {
				pool.Abort()
			}
			cancel()
			select {
			case err := <-ended:
				if abort != errors.Is(err, ErrNotLeader) {
					t.Errorf("Start: %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("the pool hangs")
			}
			pool.workers.Wait()
			if !abort && settled.Load() != 2 {
				t.Errorf("%d have settled as interrupted, want both", settled.Load())
			}
			if pool.queue.running != 0 || pool.queue.waiting != 0 {
				t.Errorf("%d run and %d wait in the end", pool.queue.running, pool.queue.waiting)
			}
		})
	}
}

// counting counts settlements of what was interrupted by the end of the pool.
type counting struct {
	joined
	settled *atomic.Int32
}

func (c counting) ExecuteTogether(ctx context.Context, others []Task) []error {
	return c.together(ctx, others)
}

func (c counting) Settle(_ context.Context, outcome error) error {
	if errors.Is(outcome, ErrStopping) {
		c.settled.Add(1)
	}
	return outcome
}

func TestABatchTakesOneWorkerAndMemoryOfItsOwn(t *testing.T) {
	memory := &room{size: 100, running: map[string]string{}}
	pool := New(Options{MaxConcurrent: 8, MaxConcurrentDrift: 2, MaxBatch: 4, Memory: memory})
	for i := range 12 {
		r := check(fmt.Sprint(i), "g", "x", nil)
		r.Footprint, r.Run = "module", r.Machine.Name
		if _, err := pool.Submit(r); err != nil {
			t.Fatal(err)
		}
	}
	first, second := pool.admit(), pool.admit()
	if first == nil || second == nil || pool.admit() != nil {
		t.Fatal("want as many batches as drift checks may run")
	}
	if len(first.batch()) != 4 || len(second.batch()) != 4 || pool.queue.running != 2 || pool.queue.waiting != 4 {
		t.Errorf("batches of %d and %d, %d workers, %d wait; want 4 and 4, 2, 4", len(first.batch()), len(second.batch()), pool.queue.running, pool.queue.waiting)
	}
	if diff := cmp.Diff(map[string]string{"0": "module batch", "4": "module batch"}, memory.running); diff != "" {
		t.Error(diff)
	}
	for _, r := range first.with {
		if status, _ := pool.Status(r.UID); status.Phase != Running {
			t.Errorf("%s is %s, want it to run", r.UID, status.Phase)
		}
	}
	if _, taken := pool.Cancel(types.UID("1")); taken {
		t.Error("a run of a batch was taken back")
	}
	pool.finishAll(first, []error{nil, ErrAlone, nil, nil}, false)
	if len(memory.running) != 1 || pool.queue.running != 1 || pool.queue.waiting != 5 {
		t.Errorf("%v, %d workers, %d wait after one of them has ended", memory.running, pool.queue.running, pool.queue.waiting)
	}
}
