package runs

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrAlone is the outcome of a task that was executed together with others and did not get what it was to get: its run waits again, and is executed
// alone then. A Settle that is given it returns it.
var ErrAlone = errors.New("the run is to be executed alone")

// Batcher is a Task that can be executed together with others.
type Batcher interface {
	Task
	// Together is called before Execute, with others whose requests have the same Batch and whose Intend has succeeded as well. Execute is then called of all
	// of them at once, so that they can wait for each other.
	Together(others []Task)
}

// batchFootprint is what the footprint of a batch has beside that of its first run.
const batchFootprint = " batch"

// maxLookedAt bounds how many waiting runs are looked at to find those that go with one.
const maxLookedAt = 1000

// companions returns runs that may be executed together with the first of a queue, so many at most. They are of its group, operation and credential, so
// that the shares of others are as they would be without.
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

// workTogether carries a batch out. Each of its runs has its own intent, execution and settlement.
func (p *Pool) workTogether(life, base context.Context, first *run) {
	batch := first.batch()
	errs, timedOut := make([]error, len(batch)), make([]bool, len(batch))
	var begun []int
	each(batch, func(i int, r *run) { errs[i] = p.begin(base, r) })
	for i, err := range errs {
		if err == nil {
			begun = append(begun, i)
		}
		if errors.Is(err, ErrNothingToDo) {
			errs[i] = nil
		}
	}
	party := make([]*run, 0, len(begun))
	for _, i := range begun {
		party = append(party, batch[i])
	}
	p.together(party)
	each(party, func(i int, r *run) { timedOut[begun[i]], errs[begun[i]] = p.conclude(life, base, r) })
	p.finishAll(first, errs, timedOut)
	for i, r := range batch {
		if !errors.Is(errs[i], ErrAlone) {
			p.wake(base, r.Machine)
		}
	}
}

// each calls do for all runs at once, and returns when all have returned.
func each(all []*run, do func(i int, r *run)) {
	var group sync.WaitGroup
	for i, r := range all {
		group.Go(func() { do(i, r) })
	}
	group.Wait()
}

// together lets the tasks of a batch know each other. Where that fails they are executed as they would be alone.
func (p *Pool) together(party []*run) {
	if len(party) < 2 {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			_ = p.panicked(party[0], cause) // it is logged
		}
	}()
	first, able := party[0].Task.(Batcher)
	if !able {
		return
	}
	others := make([]Task, 0, len(party)-1)
	for _, r := range party[1:] {
		others = append(others, r.Task)
	}
	first.Together(others)
}

// again lets a run that was executed together with others wait once more, to be executed alone. The caller holds the lock.
func (p *Pool) again(r *run, now time.Time) {
	p.options.Metrics.leftBatch(r)
	if p.stopped != nil {
		delete(p.runs, r.UID)
		return
	}
	r.Batch = ""
	r.status.Phase, r.status.QueuedAt, r.status.StartedAt = Queued, now, time.Time{}
	p.queue.push(r)
	p.options.Metrics.waiting(r, 1)
}
