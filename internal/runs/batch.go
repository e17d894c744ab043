package runs

import (
	"errors"
	"sync"
	"time"
)

// ErrAlone is the outcome of a batched task that did not get its result. Its run waits again and is
// then executed alone. Settle must return it unchanged.
var ErrAlone = errors.New("the run must be executed alone")

// Batcher is a Task that can share an execution with others.
type Batcher interface {
	Task
	// Together is called on the first of two or more tasks of a batch whose Intend has succeeded, with
	// all of those. Execute is then called on all of them concurrently, so that they can wait for each other.
	Together(all []Task)
}

// batchFootprint is appended to the footprint of a batch's first run.
const batchFootprint = " batch"

// maxLookedAt bounds the waiting runs that are considered for a batch.
const maxLookedAt = 1000

// companions returns at most the given number of runs that can join the first run of a queue. They
// share its group, operation and credential, so that the shares of others are unaffected.
func companions(first *run, most int) []*run {
	if first.Batch == "" {
		return nil
	}
	var found []*run
	looked := 0
	for r := first.next; r != nil && len(found) < most && looked < maxLookedAt; r = r.next {
		looked++
		if r.Batch == first.Batch {
			found = append(found, r)
		}
	}
	return found
}

// each calls do for all runs concurrently, and returns when all calls have.
func each(all []*run, do func(i int, r *run)) {
	var group sync.WaitGroup
	for i, r := range all {
		group.Go(func() { do(i, r) })
	}
	group.Wait()
}

// together introduces the tasks of a batch to each other. If that fails they are executed as if
// alone.
func (p *Pool) together(party []*run) {
	if len(party) < 2 {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			_ = p.panicked(party[0], cause) // logs it
		}
	}()
	first, able := party[0].Task.(Batcher)
	if !able {
		return
	}
	all := make([]Task, len(party))
	for i, r := range party {
		all[i] = r.Task
	}
	first.Together(all)
}

// again queues a batched run once more, to be executed alone. The caller holds the lock.
func (p *Pool) again(r *run, now time.Time) {
	p.options.Metrics.leftBatch(r)
	if p.stopped != nil {
		delete(p.runs, r.Key)
		return
	}
	r.Batch = ""
	r.status.Phase, r.status.QueuedAt, r.status.StartedAt = Queued, now, time.Time{}
	p.queue.push(r)
	p.options.Metrics.waiting(r, 1)
}
