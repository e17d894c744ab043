package runs

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// waitsFor starts a run that has begun, and waits for the queue of a cluster.
func waitsFor(t *testing.T, options Options, deadline time.Duration) (*Pool, *script) {
	t.Helper()
	pool := New(options)
	start(t, pool)
	task := &script{name: "m", log: &journal{}, block: make(chan struct{}), started: make(chan struct{})}
	r := request("m", "", Create, task)
	r.Deadline = deadline
	submit(t, pool, r)
	<-task.started
	pool.Waits("m", "a queue")
	expectWakes(t, pool, 1)
	return pool, task
}

func TestWhatARunWaitsForIsShown(t *testing.T) {
	pool, task := waitsFor(t, Options{}, time.Hour)
	if status, _ := pool.Status("m"); status.Waits != "a queue" || status.Phase != Running {
		t.Errorf("status %+v", status)
	}
	pool.Waits("m", "the same queue, with another reason") // nobody is woken for that
	if status, _ := pool.Status("m"); status.Waits != "the same queue, with another reason" {
		t.Errorf("status %+v", status)
	}
	pool.Waits("m", "")
	expectWakes(t, pool, 1)
	if status, _ := pool.Status("m"); status.Waits != "" {
		t.Errorf("a run that goes on waits for %q", status.Waits)
	}
	close(task.block)
	expectWakes(t, pool, 1)
	pool.Waits("m", "nothing, as it has ended")
	if len(pool.Events()) > 0 {
		t.Error("a run that has ended wakes its Machine")
	}
}

func TestTheTimeInWhichARunWaitsIsNoneOfItsDeadline(t *testing.T) {
	pool, _ := waitsFor(t, Options{}, 100*time.Millisecond)
	time.Sleep(300 * time.Millisecond)
	if status, _ := pool.Status("m"); status.Phase != Running {
		t.Fatalf("a run that waits is over: %+v", status)
	}
	pool.Waits("m", "")
	expectWakes(t, pool, 2) // it goes on, and ends
	if status, _ := pool.Status("m"); !errors.Is(status.Err, ErrDeadline) {
		t.Errorf("outcome %v, want it to be %v", status.Err, ErrDeadline)
	}
}

func TestARunDoesNotWaitForEver(t *testing.T) {
	pool, _ := waitsFor(t, Options{MaxWait: 100 * time.Millisecond, RetryBase: time.Hour}, time.Hour)
	expectWakes(t, pool, 1)
	status, _ := pool.Status("m")
	if !errors.Is(status.Err, ErrWaited) || status.Waits != "" {
		t.Errorf("it has ended with %v, and waits for %q", status.Err, status.Waits)
	}
	if again := submit(t, pool, request("m", "", Destroy, &script{name: "m", log: &journal{}})); again.Deadline != 30*time.Minute {
		t.Errorf("the time in which it has waited makes the next deadline %s", again.Deadline)
	}
}

func TestARunThatWaitsAndIsNotWantedEnds(t *testing.T) {
	pool, task := waitsFor(t, Options{}, time.Hour)
	if !pool.Interrupt("m") {
		t.Fatal("it does not end")
	}
	expectWakes(t, pool, 1)
	if status, _ := pool.Status("m"); !errors.Is(status.Err, ErrGivesWay) {
		t.Errorf("outcome %v, want it to be %v", status.Err, ErrGivesWay)
	}
	if diff := cmp.Diff([]string{"m intend", "m execute", "m settle true"}, task.log.all()); diff != "" {
		t.Error(diff)
	}
	works := &script{name: "w", log: &journal{}, block: make(chan struct{}), started: make(chan struct{})}
	submit(t, pool, request("w", "", Create, works))
	<-works.started
	if pool.Interrupt("w") || pool.Interrupt("nobody") {
		t.Error("a run ends that works, or one that there is not")
	}
	close(works.block)
	expectWakes(t, pool, 1)
}

func TestARunThatOnlyWaitsForTheInfrastructureNeedsNoWorker(t *testing.T) {
	pool := New(Options{MaxConcurrent: 1, MaxIdle: 1, MaxPerGroup: 2})
	start(t, pool)
	tasks := map[Key]*script{}
	for _, name := range []string{"a", "b", "c"} {
		tasks[Key(name)] = &script{name: name, log: &journal{}, block: make(chan struct{}), started: make(chan struct{})}
		submit(t, pool, request(name, "", Create, tasks[Key(name)]))
	}
	phases := func(when, want string) {
		t.Helper()
		got := ""
		for _, name := range []Key{"a", "b", "c"} {
			status, there := pool.Status(name)
			if there {
				got += string(name) + " " + string(status.Phase) + "; "
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	<-tasks["a"].started
	phases("one works", "a Running; b Queued; c Queued; ")
	pool.Idles("nobody")
	pool.Idles("b") // it does not execute
	pool.Idles("a")
	<-tasks["b"].started
	pool.Idles("a") // which is known
	phases("one waits for the infrastructure", "a Running; b Running; c Queued; ")
	pool.Idles("b") // too many would
	phases("two wait for it", "a Running; b Running; c Queued; ")
	close(tasks["a"].block)
	expectWakes(t, pool, 1)
	phases("the first has ended", "b Running; c Queued; ")
	pool.Idles("b")
	<-tasks["c"].started
	close(tasks["b"].block)
	close(tasks["c"].block)
	expectWakes(t, pool, 2)
	pool.workers.Wait()
	if pool.idle != 0 || pool.queue.running != 0 {
		t.Errorf("%d runs are idle and %d hold workers in the end", pool.idle, pool.queue.running)
	}
}

func TestThrottledRunsKeepTheirWorkers(t *testing.T) {
	pool := New(Options{MaxConcurrent: 1, MaxIdle: 1})
	start(t, pool)
	task := &script{name: "a", log: &journal{}, block: make(chan struct{}), started: make(chan struct{})}
	r := request("a", "", Create, task)
	r.Credential = "slow"
	submit(t, pool, r)
	<-task.started
	pool.mu.Lock()
	pool.queue.throttles["slow"] = &throttle{most: 1}
	pool.mu.Unlock()
	pool.Idles("a")
	if pool.idle != 0 {
		t.Error("its worker is free, so that the next run asks the infrastructure, too")
	}
	close(task.block)
	expectWakes(t, pool, 1)
}

func TestABatchThatWaitsReleasesItsWorkerOnce(t *testing.T) {
	pool := New(Options{MaxConcurrent: 1, MaxIdle: 2, MaxBatch: 2})
	log := &journal{}
	task := map[string]*script{}
	for _, name := range []string{"a", "b"} {
		task[name] = &script{name: name, log: log, block: make(chan struct{}), started: make(chan struct{})}
		r := request(name, "g", Create, joined{script: task[name]})
		r.Batch = "x"
		submit(t, pool, r)
	}
	start(t, pool)
	<-task["a"].started
	pool.Idles("b")
	pool.Idles("a")
	if pool.idle != 1 || pool.queue.running != 0 {
		t.Errorf("%d are idle and %d hold workers, want the batch to count once", pool.idle, pool.queue.running)
	}
	close(task["a"].block)
	close(task["b"].block)
	expectWakes(t, pool, 2)
	pool.workers.Wait()
	if pool.idle != 0 || pool.queue.running != 0 {
		t.Errorf("%d are idle and %d hold workers in the end", pool.idle, pool.queue.running)
	}
}

// tooLarge is a memory into which nothing fits beside anything else.
type tooLarge struct{}

func (tooLarge) Fits(string) bool    { return false }
func (tooLarge) Started(_, _ string) {}
func (tooLarge) Ended(string)        {}

func TestRunsThatAreIdleStillNeedMemory(t *testing.T) {
	pool := New(Options{MaxConcurrent: 2, MaxIdle: 2, MaxPerGroup: 2, Memory: tooLarge{}})
	start(t, pool)
	first := &script{name: "a", log: &journal{}, block: make(chan struct{}), started: make(chan struct{})}
	submit(t, pool, request("a", "", Create, first))
	<-first.started
	pool.Idles("a")
	if status := submit(t, pool, request("b", "", Create, &script{name: "b", log: &journal{}})); status.Phase != Queued {
		t.Errorf("a second run is %s, want it to wait for memory", status.Phase)
	}
	close(first.block)
	expectWakes(t, pool, 2)
}

func TestWhichRunsStayWithTheirWorkers(t *testing.T) {
	for name, tc := range map[string]struct {
		second Operation
		group  string
		idle   int
	}{
		"another group's":              {Create, "h", 2},
		"the group's beyond its share": {Create, "g", 1},
		"a drift check":                {Drift, "h", 1},
	} {
		t.Run(name, func(t *testing.T) {
			pool := New(Options{MaxConcurrent: 4, MaxIdle: 4, MaxPerGroup: 1})
			start(t, pool)
			one := &script{name: "a", log: &journal{}, block: make(chan struct{}), started: make(chan struct{})}
			other := &script{name: "b", log: &journal{}, block: make(chan struct{}), started: make(chan struct{})}
			submit(t, pool, request("a", "g", Create, one))
			submit(t, pool, request("b", tc.group, tc.second, other))
			<-one.started
			pool.Idles("a")
			<-other.started
			pool.Idles("b")
			pool.mu.Lock()
			if pool.idle != tc.idle {
				t.Errorf("%d runs are idle, want %d", pool.idle, tc.idle)
			}
			pool.mu.Unlock()
			close(one.block)
			close(other.block)
			expectWakes(t, pool, 2)
			pool.workers.Wait()
			if left := len(pool.queue.idleGroups) + len(pool.queue.idleCredentials); left > 0 {
				t.Errorf("%d groups and credentials are idle in the end", left)
			}
		})
	}
}
