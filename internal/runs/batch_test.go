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
	clocktesting "k8s.io/utils/clock/testing"
)

// joined is a script that can be executed together with others.
type joined struct {
	*script
	// together is called with the others, if set.
	together func()
	// outcomes are those of its executions, one after another; then it has the script's.
	outcomes *[]error
}

func (j joined) Together(all []Task) {
	var names []string
	for _, one := range all {
		names = append(names, one.(joined).name)
	}
	j.log.add("together %s", strings.Join(names, " "))
	if j.together != nil {
		j.together()
	}
}

func (j joined) Execute(ctx context.Context) error {
	err := j.script.Execute(ctx)
	if j.outcomes == nil || len(*j.outcomes) == 0 || err != nil {
		return err
	}
	err, *j.outcomes = (*j.outcomes)[0], (*j.outcomes)[1:]
	return err
}

// check is a request for a drift check with a batch.
func check(name, group, batch string, task Task) Request {
	r := request(name, group, Drift, task)
	r.Batch = batch
	return r
}

// executed returns what a journal says of executions, those at the same time in the order of their
// names.
func executed(log *journal) []string {
	var lines []string
	from := 0
	for _, line := range log.all() {
		switch {
		case strings.HasPrefix(line, "together"):
			from = len(lines) + 1
		case !strings.HasSuffix(line, "execute"):
			continue
		}
		lines = append(lines, line)
		if from > 0 && len(lines)-from <= len(strings.Fields(lines[from-1]))-1 {
			slices.Sort(lines[from:])
		}
	}
	return lines
}

func TestRunsThatMayBeExecutedTogetherAre(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 1, MaxBatchDrift: 3})
	for _, r := range []struct{ name, group, batch string }{
		{"a", "g", "x"}, {"b", "g", "y"}, {"c", "g", "x"}, {"d", "h", "x"}, {"e", "g", "x"}, {"f", "g", "x"}, {"g", "g", ""}, {"h", "g", ""},
	} {
		submit(t, pool, check(r.name, r.group, r.batch, joined{script: &script{name: r.name, log: log}}))
	}
	start(t, pool)
	expectWakes(t, pool, 8)
	want := []string{"together a c e", "a execute", "c execute", "e execute", "d execute", "b execute", "f execute", "g execute", "h execute"}
	if diff := cmp.Diff(want, executed(log)); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"a", "c", "e"} {
		if lines := log.all(); !slices.Contains(lines, name+" intend") || !slices.Contains(lines, name+" settle false") {
			t.Errorf("%s has no intent or settlement of its own: %q", name, lines)
		}
	}
	pool.workers.Wait()
	if left := pool.queue.waiting + pool.queue.running + len(pool.runs); left != 0 {
		t.Errorf("%d runs are left", left)
	}
}

func TestWhatIsToBeExecutedAloneWaitsAgain(t *testing.T) {
	log := &journal{}
	metrics := NewMetrics()
	pool := New(Options{MaxConcurrent: 1, MaxBatchDrift: 9, Metrics: metrics})
	for i, outcome := range []error{nil, ErrAlone, errors.New("refused"), ErrAlone} {
		name := string(rune('a' + i))
		submit(t, pool, check(name, "g", "x", joined{script: &script{name: name, log: log}, outcomes: &[]error{outcome}}))
	}
	submit(t, pool, check("other", "h", "", &script{name: "other", log: log}))
	start(t, pool)
	expectWakes(t, pool, 5)
	if diff := cmp.Diff([]string{"other execute", "b execute", "d execute"}, executed(log)[5:]); diff != "" {
		t.Errorf("executed alone, after the run of another group (-want +got):\n%s", diff)
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
	for name, tc := range map[string]struct {
		first script
		want  string
	}{
		"in the engine":       {script{outcome: errors.New("refused")}, "together b c"},
		"before it was begun": {script{intendErr: errors.New("locked")}, "together a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &journal{}
			pool := New(Options{MaxConcurrent: 1, MaxBatchDrift: 9, RetryBase: time.Nanosecond, RetryMax: time.Nanosecond})
			tc.first.name, tc.first.log = "a", log
			submit(t, pool, check("a", "g", "x", joined{script: &tc.first}))
			start(t, pool)
			expectWakes(t, pool, 1)
			blocker := &script{name: "blocker", log: log, block: make(chan struct{}), started: make(chan struct{})}
			submit(t, pool, request("blocker", "g", Destroy, blocker))
			<-blocker.started
			for _, name := range []string{"a", "b", "c"} {
				submit(t, pool, check(name, "g", "x", joined{script: &script{name: name, log: log}}))
			}
			close(blocker.block)
			expectWakes(t, pool, 4)
			if lines := log.all(); !slices.Contains(lines, "a execute") || !slices.Contains(lines, tc.want) {
				t.Errorf("%q, want %s", lines, tc.want)
			}
		})
	}
}

func TestNothingInABatchIsInTheWayOfTheOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		intendErr error
		together  func()
		panics    bool
		hangs     bool
		want      []string
	}{
		"one that has nothing to do":    {intendErr: ErrNothingToDo, want: []string{"together b c", "b execute", "c execute"}},
		"one that cannot take its lock": {intendErr: errors.New("locked"), want: []string{"together b c", "b execute", "c execute"}},
		"one that panics":               {panics: true, want: []string{"together b c", "b execute", "c execute"}},
		"one that cannot be joined":     {together: func() { panic("no") }, want: []string{"together a b c", "a execute", "b execute", "c execute"}},
		"one that uses up its deadline": {hangs: true, want: []string{"together a b c", "a execute", "b execute", "c execute"}},
	} {
		t.Run(name, func(t *testing.T) {
			log := &journal{}
			pool := New(Options{MaxConcurrent: 1, MaxBatchDrift: 9, Deadline: 50 * time.Millisecond, MinDeadline: 50 * time.Millisecond})
			for _, member := range []string{"a", "b", "c"} {
				s := &script{name: member, log: log}
				var task Task = joined{script: s, together: tc.together}
				if member == "a" {
					s.intendErr = tc.intendErr
				}
				if member == "a" && tc.hangs {
					s.block = make(chan struct{})
				}
				if member == "a" && tc.panics {
					task = panicking{joined{script: s}}
				}
				submit(t, pool, check(member, "g", "x", task))
			}
			start(t, pool)
			expectWakes(t, pool, 3)
			if diff := cmp.Diff(tc.want, executed(log)); diff != "" {
				t.Error(diff)
			}
			for _, member := range []string{"b", "c"} {
				if lines := log.all(); !slices.Contains(lines, member+" settle false") {
					t.Errorf("%s has not settled well: %q", member, lines)
				}
			}
			if status, _ := pool.Status("a"); tc.hangs && (status.Phase != Failed || !errors.Is(status.Err, ErrDeadline) || pool.runs["a"].timeouts != 1) {
				t.Errorf("the one that hangs is %+v, want it to have used up its deadline", status)
			}
			pool.workers.Wait()
			if pool.queue.running != 0 || pool.queue.waiting != 0 {
				t.Errorf("%d run and %d wait in the end", pool.queue.running, pool.queue.waiting)
			}
		})
	}
}

// panicking panics as soon as it is to do something.
type panicking struct{ joined }

func (panicking) Intend(context.Context) error { panic("no") }

func TestARunOfABatchThatPanicsIsNotSettled(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 1, MaxBatch: 9})
	for _, name := range []string{"a", "b"} {
		var task Task = joined{script: &script{name: name, log: log}}
		if name == "b" {
			task = late{joined{script: &script{name: name, log: log}}}
		}
		r := request(name, "g", Create, task)
		r.Batch = "x"
		submit(t, pool, r)
	}
	start(t, pool)
	expectWakes(t, pool, 2)
	if status, _ := pool.Status("b"); !errors.Is(status.Err, ErrNotSettled) {
		t.Errorf("%+v, want a run of which it is not known what it did", status)
	}
	if lines := log.all(); !slices.Contains(lines, "a settle false") || slices.Contains(lines, "b settle true") {
		t.Errorf("%q, want a to settle, and b not to", lines)
	}
}

// late panics while it executes.
type late struct{ joined }

func (late) Execute(context.Context) error { panic("no") }

func TestAPoolThatIsStoppedEndsItsBatches(t *testing.T) {
	for name, abort := range map[string]bool{"stopped": false, "aborted": true} {
		t.Run(name, func(t *testing.T) {
			log := &journal{}
			pool := New(Options{MaxConcurrent: 1, MaxBatchDrift: 9})
			var settled atomic.Int32
			started := make(chan struct{})
			for _, member := range []string{"a", "b"} {
				s := &script{name: member, log: log, block: make(chan struct{})}
				if member == "b" {
					s.started = started
				}
				submit(t, pool, check(member, "g", "x", counting{joined{script: s}, &settled}))
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- pool.Start(ctx) }()
			<-started
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

func (c counting) Together([]Task) {}

func (c counting) Settle(_ context.Context, outcome error) error {
	if errors.Is(outcome, ErrStopping) {
		c.settled.Add(1)
	}
	return outcome
}

func TestChangesHaveBatchesOfTheirOwnSize(t *testing.T) {
	pool := New(Options{MaxConcurrent: 8, MaxBatch: 3, MaxBatchDrift: 2})
	for i := range 4 {
		for _, operation := range []Operation{Create, Drift} {
			r := request(fmt.Sprint(operation, i), "g", operation, nil)
			r.Batch = "x"
			if _, err := pool.Submit(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, want := range []struct {
		operation Operation
		size      int
	}{{Create, 3}, {Create, 1}, {Drift, 2}} {
		if got := pool.admit(); got == nil || got.Operation != want.operation || len(got.batch()) != want.size {
			t.Errorf("got %+v, want %d to %s", got, want.size, want.operation)
		}
	}
}

func TestABurstIsGathered(t *testing.T) {
	log := &journal{}
	pool := New(Options{MaxConcurrent: 8, MaxBatch: 4, Gather: time.Second})
	start(t, pool)
	ask := func(name, batch string) {
		r := request(name, "g", Create, joined{script: &script{name: name, log: log}})
		r.Batch = batch
		submit(t, pool, r)
	}
	began := time.Now()
	ask("alone", "")
	expectWakes(t, pool, 1)
	if waited := time.Since(began); waited >= time.Second {
		t.Errorf("a run without a batch started after %s, want it at once", waited)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		ask(name, "full")
	}
	expectWakes(t, pool, 4)
	if waited := time.Since(began); waited >= time.Second {
		t.Errorf("a full batch started after %s, want it at once", waited)
	}
	for _, name := range []string{"e", "f"} {
		ask(name, "part")
		time.Sleep(10 * time.Millisecond)
	}
	expectWakes(t, pool, 2)
	want := []string{"alone execute", "together a b c d", "a execute", "b execute", "c execute", "d execute", "together e f", "e execute", "f execute"}
	if diff := cmp.Diff(want, executed(log)); diff != "" {
		t.Error(diff)
	}
}

func TestABatchWaitsForMoreRuns(t *testing.T) {
	const gather = time.Second
	for name, tc := range map[string]struct {
		submitted []time.Duration // of the runs of the batch, since the first
		starts    time.Duration   // when the batch starts
		size      int
		executing int // how many of its kind execute
	}{
		"one run waits once":                      {[]time.Duration{0}, gather, 1, 0},
		"each run makes the batch wait again":     {[]time.Duration{0, gather / 2}, gather * 3 / 2, 2, 0},
		"no run waits more than four times":       {[]time.Duration{0, gather * 9 / 10, gather * 9 / 5, gather * 27 / 10, gather * 18 / 5}, 4 * gather, 5, 0},
		"a full batch starts at once":             {[]time.Duration{0, 0, 0, 0, 0, 0, 0}, 0, 6, 0},
		"a batch that becomes full does not wait": {[]time.Duration{0, 0, 0, 0, 0, gather / 2}, gather / 2, 6, 0},
		"beside one of its kind twice as long":    {[]time.Duration{0}, 2 * gather, 1, 1},
		"beside many four times as long":          {[]time.Duration{0, 2 * gather}, 6 * gather, 2, 7},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(midnight)
			pool := New(Options{MaxConcurrent: 8, MaxBatch: 6, Gather: gather, Clock: clock})
			pool.batches[batchKey{"g", "x", Create}] = tc.executing
			advance := func(to time.Duration) {
				t.Helper()
				clock.SetTime(midnight.Add(to - time.Millisecond))
				if got := pool.admit(); got != nil {
					t.Fatalf("%d runs started before %s", len(got.batch()), to)
				}
				clock.SetTime(midnight.Add(to))
			}
			for i, at := range tc.submitted {
				if at > 0 {
					advance(at)
				}
				r := request(fmt.Sprint(i), "g", Create, nil)
				r.Batch = "x"
				if _, err := pool.Submit(r); err != nil {
					t.Fatal(err)
				}
			}
			if tc.starts > tc.submitted[len(tc.submitted)-1] {
				advance(tc.starts)
			}
			if got := pool.admit(); got == nil || len(got.batch()) != tc.size {
				t.Errorf("got %+v, want %d runs at %s", got, tc.size, tc.starts)
			}
		})
	}
}

func TestABatchTakesOneWorkerAndMemoryOfItsOwn(t *testing.T) {
	memory := &room{size: 100, running: map[string]string{}}
	pool := New(Options{MaxConcurrent: 8, MaxConcurrentDrift: 2, MaxBatchDrift: 4, Memory: memory})
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
	for _, r := range first.batch() {
		if status, _ := pool.Status(r.Key); status.Phase != Running {
			t.Errorf("%s is %s, want it to run", r.Key, status.Phase)
		}
	}
	if _, taken := pool.Cancel(Key("1")); taken {
		t.Error("a run of a batch was taken back")
	}
	batch, errs := first.batch(), []error{nil, ErrAlone, nil, nil}
	for i, r := range batch[:3] {
		pool.finish(r, errs[i], false)
		if len(memory.running) != 2 || pool.queue.running != 2 {
			t.Errorf("%v, %d workers while a batch waits for its last run", memory.running, pool.queue.running)
		}
	}
	pool.finish(batch[3], errs[3], false)
	if len(memory.running) != 1 || pool.queue.running != 1 || pool.queue.waiting != 5 {
		t.Errorf("%v, %d workers, %d wait after one of them has ended", memory.running, pool.queue.running, pool.queue.waiting)
	}
}

func TestAStatusSaysHowManyWait(t *testing.T) {
	pool := New(Options{})
	for i := range 3 {
		status, err := pool.Submit(request(fmt.Sprint(i), "g", Create, nil))
		if err != nil || status.Waiting != i+1 {
			t.Errorf("run %d: %d wait (%v), want %d", i, status.Waiting, err, i+1)
		}
	}
	if status, _ := pool.Status("0"); status.Waiting != 3 {
		t.Errorf("%d wait, want 3", status.Waiting)
	}
	pool.admit()
	if status, _ := pool.Status("0"); status.Waiting != 0 {
		t.Errorf("a run that runs says that %d wait", status.Waiting)
	}
}
