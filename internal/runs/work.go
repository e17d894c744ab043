package runs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// work executes a batch, most often of one run, and wakes its Machines. Each run has its own intent,
// execution and settlement, and ends when it has settled: a slow Machine delays none of the others.
// life ends settlements, base everything else.
func (p *Pool) work(life, base context.Context, first *run) {
	defer p.workers.Done()
	batch := first.batch()
	first.with = nil // it may be kept for an hour
	errs := make([]error, len(batch))
	each(batch, func(i int, r *run) { errs[i] = p.begin(base, r) })
	var begun []*run
	for i, r := range batch {
		if errs[i] == nil {
			begun = append(begun, r)
		}
	}
	p.together(begun)
	each(batch, func(i int, r *run) {
		timedOut, err := false, errs[i]
		switch {
		case err == nil:
			timedOut, err = p.conclude(life, base, r)
		case errors.Is(err, ErrNothingToDo):
			err = nil
		}
		p.finish(r, err, timedOut)
		if !errors.Is(err, ErrAlone) {
			p.wake(base, r.Machine)
		}
	})
}

// begin makes the run record its intent.
func (p *Pool) begin(base context.Context, r *run) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = p.panicked(r, cause)
		}
	}()
	err = p.intend(base, r)
	if err == nil || errors.Is(err, ErrNothingToDo) {
		return err
	}
	return fmt.Errorf("recording the intent to %s: %w", r.Operation, err)
}

// conclude executes and settles a run that has begun.
func (p *Pool) conclude(life, base context.Context, r *run) (timedOut bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = NotSettled(p.panicked(r, cause))
		}
	}()
	timedOut, outcome := p.execute(base, r)
	p.heed(r, outcome)
	return timedOut, p.settle(life, r, outcome)
}

// panicked logs a task's panic and returns it as an error.
func (p *Pool) panicked(r *run, cause any) error {
	p.options.Logger.Error(fmt.Errorf("%v", cause), "A run panicked", "Machine", r.Machine, "stack", string(debug.Stack()))
	return fmt.Errorf("running %s for Machine %s: internal error: %v", r.Operation, r.Machine, cause)
}

// intend lets the task decide and record its intent, and saves its reason.
func (p *Pool) intend(base context.Context, r *run) error {
	ctx, cancel := context.WithTimeout(base, p.options.BookkeepingTimeout)
	defer cancel()
	err := r.Task.Intend(ctx)
	if reasoner, ok := r.Task.(Reasoner); ok {
		reason := reasoner.Reason()
		p.mu.Lock()
		r.status.Reason = reason
		p.mu.Unlock()
	}
	p.mu.Lock()
	r.begun = r.begun || err == nil
	p.mu.Unlock()
	return err
}

// execute returns whether the deadline ended the task, and its outcome, joined with the cause of a
// cancellation.
func (p *Pool) execute(base context.Context, r *run) (timedOut bool, outcome error) {
	ctx, cancel := context.WithCancelCause(p.late)
	defer cancel(nil)
	finisher, finishes := r.Task.(Finisher)
	defer context.AfterFunc(base, func() {
		if !finishes || !finisher.Finishing() {
			cancel(context.Cause(base))
		}
	})()
	defer p.bound(r, cancel)()
	outcome = r.Task.Execute(ctx)
	cause := context.Cause(ctx)
	if outcome == nil || cause == nil {
		return false, outcome
	}
	return errors.Is(cause, ErrDeadline), errors.Join(outcome, cause)
}

// settle returns the task's final outcome. The error is ErrNotSettled if Execute succeeded or
// Settle timed out.
func (p *Pool) settle(life context.Context, r *run, outcome error) error {
	ctx, cancel := context.WithTimeout(life, p.options.BookkeepingTimeout)
	defer cancel()
	err := r.Task.Settle(ctx, outcome)
	if err != nil && (outcome == nil || ctx.Err() != nil) {
		return NotSettled(err)
	}
	return err
}
