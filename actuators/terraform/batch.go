package terraform

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

// maxUnclear is how many consecutive inconclusive batch plans of a module are tolerated. After that
// each Machine is planned alone: the module always warns, so batches would plan twice.
const maxUnclear = 3

// endsWithin is how long a process may go on that has done its work.
const endsWithin = time.Minute

var errAllSettled = errors.New("all Machines of the batch have settled")

// calledModule is a module that supports batches.
type calledModule struct {
	*batch.Module
	unclear atomic.Int32
}

// called returns the module's form for batches, or nil if it does not support them.
func (r *Runner) called(used *module.Module) *calledModule {
	if known, ok := r.batches.Load(used.Digest()); ok {
		return known.(*calledModule)
	}
	read, err := batch.NewModule(used.Files())
	var found *calledModule
	if err == nil {
		found = &calledModule{Module: read}
	}
	known, _ := r.batches.LoadOrStore(used.Digest(), found)
	return known.(*calledModule)
}

// clean returns which of a module's runs are as applied according to a plan.
func (r *Runner) clean(called *calledModule, digest string, report *engine.Report, l batch.Layout) []bool {
	asApplied := l.Clean(report)
	if asApplied != nil {
		called.unclear.Store(0)
		return asApplied
	}
	if called.unclear.Add(1) >= maxUnclear {
		r.batches.Store(digest, (*calledModule)(nil))
	}
	return make([]bool, l.Machines)
}

// BatchKey implements runner.Batcher.
func (r *Runner) BatchKey(run runner.RunSpec) string {
	called := r.called(run.Module)
	if called == nil {
		return ""
	}
	common, err := called.Common(run.Variables)
	if err != nil {
		return ""
	}
	// Maps are marshaled in the order of their keys.
	all, err := json.Marshal([]any{run.Module.Digest(), run.Credentials, run.Environment, run.Files,
		json.RawMessage(common)})
	if err != nil {
		return ""
	}
	hash := sha256.Sum256(all)
	return hex.EncodeToString(hash[:])
}

// Batch implements runner.Batcher.
func (r *Runner) Batch(runs int) []runner.Share {
	j := &joint{runner: r, missing: runs, all: make(chan struct{})}
	shares := make([]runner.Share, runs)
	for i := range shares {
		shares[i] = &share{joint: j, index: i, done: make(chan struct{})}
	}
	return shares
}

// joint executes a batch in one process.
type joint struct {
	runner *Runner

	mu sync.Mutex
	// missing counts the runs that have neither arrived nor left. all is closed when it reaches
	// zero.
	missing int
	all     chan struct{}
	// come are the runs that have arrived, in order.
	come []*share
	once sync.Once
	// cancel ends the process, which outlives the run that has started it.
	cancel context.CancelCauseFunc
	layout batch.Layout
}

// share implements runner.Share, and the runner.Workspace that it opens.
type share struct {
	joint *joint
	index int
	run   runner.RunSpec
	// counted reports that the others no longer wait for it.
	counted bool
	// alone is the run's own workspace, if no other run has arrived.
	alone runner.Workspace

	look look
	// done is closed when report and err are the run's outcome, which may be long before the process
	// ends. settled says so to the process, under the lock of the joint.
	done    chan struct{}
	settled bool
	report  *engine.Report
	err     error
	// panicked is what the process's goroutine panicked with.
	panicked any
	// applied are the changes that the process has made so far.
	applied []engine.Applied
	// unsaved is the state that could not be saved. keepErr says why it is not kept beyond this
	// process.
	unsaved []byte
	keepErr error
}

var _ runner.Workspace = &share{}

// Open implements runner.Share.
func (s *share) Open(_ context.Context, run runner.RunSpec) (runner.Workspace, error) {
	s.run = run
	return s, nil
}

// Leave implements runner.Share.
func (s *share) Leave() {
	s.joint.mu.Lock()
	defer s.joint.mu.Unlock()
	s.count()
}

// count stops waiting for the share. The caller holds the lock.
func (s *share) count() {
	if s.counted {
		return
	}
	s.counted = true
	if s.joint.missing--; s.joint.missing == 0 {
		close(s.joint.all)
	}
}

// do arrives at an operation of the engine and returns its outcome.
func (s *share) do(ctx context.Context, op failure.Op) (*engine.Report, error) {
	return s.join(ctx, op, func(ctx context.Context) { s.joint.carryOut(ctx, op) })
}

// join waits for the others, and lets one of them execute the batch.
func (s *share) join(ctx context.Context, op failure.Op, carryOut func(context.Context)) (*engine.Report, error) {
	j := s.joint
	j.mu.Lock()
	if s.counted {
		j.mu.Unlock()
		return &engine.Report{}, runner.ErrAlone
	}
	j.come = append(j.come, s)
	s.count()
	j.mu.Unlock()
	select {
	case <-j.all:
	case <-ctx.Done():
		if j.withdraw(s) {
			return &engine.Report{}, &failure.Error{Op: op, Class: failure.Interrupted, Err: context.Cause(ctx)}
		}
	}
	j.once.Do(func() {
		var process context.Context
		process, j.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		go j.process(process, carryOut)
	})
	select {
	case <-s.done:
	case <-ctx.Done():
		j.cancel(context.Cause(ctx))
		<-s.done
	}
	if s.panicked != nil {
		panic(s.panicked)
	}
	return s.report, s.err
}

// process executes the batch, and then settles what has not settled meanwhile. The first run names
// the folder, as the pool accounts for the batch by it.
func (j *joint) process(ctx context.Context, carryOut func(context.Context)) {
	defer j.cancel(nil)
	slices.SortFunc(j.come, func(a, b *share) int { return a.index - b.index })
	defer func() {
		cause := recover()
		j.each(func(_ int, one *share) {
			one.panicked = cause
			close(one.done)
		})
	}()
	carryOut(ctx)
}

// settle gives a run its outcome while the process goes on for the others.
func (j *joint) settle(n int, providers string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one := j.come[n]
	if !one.settled {
		one.settled, one.report, one.err = true, &engine.Report{Applied: one.applied, Providers: providers}, nil
		close(one.done)
	}
	if !slices.ContainsFunc(j.come, func(one *share) bool { return !one.settled }) {
		time.AfterFunc(endsWithin, func() { j.cancel(errAllSettled) })
	}
}

// withdraw undoes a share's arrival. It returns false if the batch has already started.
func (j *joint) withdraw(s *share) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.missing == 0 {
		return false
	}
	j.come = slices.DeleteFunc(j.come, func(one *share) bool { return one == s })
	return true
}

// Plan implements runner.Workspace.
func (s *share) Plan(ctx context.Context) (*engine.Report, error) { return s.do(ctx, failure.OpPlan) }

// Apply implements runner.Workspace.
func (s *share) Apply(ctx context.Context) (*engine.Report, error) { return s.do(ctx, failure.OpApply) }

// Destroy implements runner.Workspace.
func (s *share) Destroy(ctx context.Context) (*engine.Report, error) {
	return s.do(ctx, failure.OpDestroy)
}

// Planned implements runner.Workspace.
func (s *share) Planned(ctx context.Context) (*engine.PlannedObjects, error) {
	if s.alone != nil {
		return s.alone.Planned(ctx)
	}
	return nil, runner.ErrAlone
}

// ApplyPlan implements runner.Workspace.
func (s *share) ApplyPlan(ctx context.Context) (*engine.Report, error) {
	if s.alone != nil {
		return s.alone.ApplyPlan(ctx)
	}
	return &engine.Report{}, runner.ErrAlone
}

// Unsaved implements runner.Workspace.
func (s *share) Unsaved() bool {
	if s.alone != nil {
		return s.alone.Unsaved()
	}
	return s.unsaved != nil
}

// Save implements runner.Workspace.
func (s *share) Save(ctx context.Context) error {
	if s.alone != nil {
		return s.alone.Save(ctx)
	}
	if s.unsaved == nil {
		return nil
	}
	if err := s.run.Session.Put(ctx, s.unsaved); err != nil {
		return err
	}
	s.unsaved = nil
	return s.joint.runner.engine.Discard(s.run.ID)
}

// Keep implements runner.Workspace. The state was kept as soon as the engine failed to save it.
func (s *share) Keep() error {
	if s.alone != nil {
		return s.alone.Keep()
	}
	return s.keepErr
}

// Close implements runner.Workspace.
func (s *share) Close() error {
	if s.alone != nil {
		return s.alone.Close()
	}
	return nil
}

// carryOut executes the operation for all arrived runs. If nothing could be started, each run finds
// out the cause alone.
func (j *joint) carryOut(ctx context.Context, op failure.Op) {
	if len(j.come) == 1 {
		j.come[0].doAlone(ctx, op)
		return
	}
	report, err := j.operate(ctx, op)
	j.each(func(n int, one *share) { one.report, one.err = j.layout.PartOf(report, n), err })
	failed, ok := errors.AsType[*failure.Error](err)
	switch {
	case op == failure.OpPlan:
		j.settlePlan(report, err)
	case err != nil && !ok:
		j.each(func(_ int, one *share) { one.err = fmt.Errorf("%w: %w", runner.ErrAlone, err) })
	case err != nil:
		j.settleFailure(op, failed)
	}
}

// each calls do for the runs that have not settled.
func (j *joint) each(do func(n int, one *share)) {
	for n, one := range j.come {
		if !one.settled {
			do(n, one)
		}
	}
}

// doAlone executes the operation without a batch.
func (s *share) doAlone(ctx context.Context, op failure.Op) {
	s.report = &engine.Report{}
	if s.alone, s.err = s.joint.runner.Open(ctx, s.run); s.err != nil {
		s.alone = nil
		return
	}
	switch op {
	case failure.OpPlan:
		s.report, s.err = s.alone.Plan(ctx)
	case failure.OpApply:
		s.report, s.err = s.alone.Apply(ctx)
	default:
		s.report, s.err = s.alone.Destroy(ctx)
	}
}

// settlePlan sends each run whose plan is not clean to be planned alone.
func (j *joint) settlePlan(report *engine.Report, err error) {
	first := j.come[0].run.Module
	var clean []bool
	if called := j.runner.called(first); err == nil && called != nil {
		clean = j.runner.clean(called, first.Digest(), report, j.layout)
	}
	for n, one := range j.come {
		if clean == nil || !clean[n] {
			one.err = runner.ErrAlone
			continue
		}
		one.err = nil
		one.say(fmt.Sprintf("(Planned in a batch of %d Machines: this one is unchanged.)", len(j.come)))
	}
}

// settleFailure gives each run its own errors. An engine that exited by itself has done all that it
// could: for a run without errors the instance exists but its outputs are missing, or it was not
// started. If the engine was killed, nothing is known.
func (j *joint) settleFailure(op failure.Op, failed *failure.Error) {
	if failed.Err != nil || failed.Class == failure.StateNotSaved {
		return
	}
	j.each(func(_ int, one *share) {
		own := one.report.Errors()
		switch {
		case len(own) > 0:
			one.err = &failure.Error{Op: failed.Op, Class: failure.Classify(own, one.run.Module.Final), Diagnostics: own,
				Hint: failed.Hint}
		case op == failure.OpDestroy && len(one.report.Applied) > 0:
			one.err = nil
		default:
			one.err = runner.ErrAlone
		}
	})
}

// operate runs the engine. An error other than a [failure.Error] means that it was not started.
func (j *joint) operate(ctx context.Context, op failure.Op) (*engine.Report, error) {
	first := j.come[0].run
	nothing := &engine.Report{}
	called := j.runner.called(first.Module)
	if called == nil {
		return nothing, errors.New("the module does not support batches")
	}
	if err := j.runner.prepare(ctx, first); err != nil {
		return nothing, errors.New(err.Error())
	}
	if j.layout = batch.Apart(len(j.come)); op == failure.OpPlan {
		j.layout = batch.Together(len(j.come))
	}
	states, err := newStates(ctx, called, j.come, j.layout)
	if err != nil {
		return nothing, err
	}
	workspace, closeIt, err := j.open(ctx, called, states, op)
	if err != nil {
		return nothing, errors.New(err.Error())
	}
	defer closeIt()
	states.settle = func(n int) {
		if err := workspace.Settled(j.come[n].run.ID); err == nil {
			j.settle(n, workspace.Used())
		}
	}
	states.ctx = ctx
	defer states.end()
	defer context.AfterFunc(ctx, states.interrupt)()
	var report *engine.Report
	switch op {
	case failure.OpPlan:
		return workspace.Plan(ctx, tofu.PlanOptions{Refresh: true})
	case failure.OpApply:
		report, err = workspace.Apply(ctx)
	default:
		report, err = workspace.Destroy(ctx)
	}
	states.end()
	return report, errors.Join(err, j.keep(workspace, states))
}

// keep keeps the unsaved state of each Machine.
func (j *joint) keep(workspace *tofu.Workspace, states *states) error {
	unsaved := workspace.ErroredState()
	if unsaved == nil {
		return nil
	}
	split, err := states.parts.Split(unsaved)
	if err != nil {
		return err
	}
	kept := workspace.Keep()
	j.each(func(n int, one *share) { one.keepErr, one.unsaved = kept, split[n] })
	return kept
}

// open opens the batch's workspace.
func (j *joint) open(ctx context.Context, called *calledModule, all *states,
	op failure.Op) (*tofu.Workspace, func(), error) {
	serve, parts := func() (backend.Endpoint, error) { return j.runner.backend.OpenStore(all) }, all.parts
	if op == failure.OpPlan {
		serve, parts = func() (backend.Endpoint, error) { return j.runner.backend.OpenCopy(all.whole) }, nil
	}
	endpoint, err := serve()
	if err != nil {
		return nil, nil, err
	}
	spec := specOf(j.spec(op, all), backendOf(endpoint))
	spec.Batch = &tofu.Batch{Layout: j.layout, Parts: parts}
	if spec.Bare == nil {
		spec.Variables = all.variables
		spec.Batch.Root, spec.Batch.Folder, spec.Batch.Files = called.Root(j.layout), batch.Folder, called.Files()
		if op == failure.OpApply {
			spec.Batch.Root = called.RootToApply(j.layout, endpoint.Pause())
		}
	}
	workspace, err := j.runner.engine.Open(ctx, spec)
	if err != nil {
		endpoint.Close()
		return nil, nil, err
	}
	return workspace, func() {
		endpoint.Close()
		if err := workspace.Close(); err != nil {
			j.come[0].say(fmt.Sprintf("(Removing the folder of the batch: %v)", err))
		}
	}, nil
}

// spec returns the batch's run. A plan's output is dropped: if it mentions a Machine, that one is
// planned alone.
func (j *joint) spec(op failure.Op, states *states) runner.RunSpec {
	all := j.quiet()
	all.ID += "-batch"
	if op == failure.OpPlan {
		return all
	}
	for _, one := range j.come {
		one.say(fmt.Sprintf("(Executed in a batch of %d Machines.)", len(j.come)))
	}
	all.Progress = func(event engine.Event) {
		inside, n, ok := j.layout.EventOf(event)
		if ok {
			j.progress(n, inside)
		}
		states.note(inside, n, ok)
	}
	all.Output = func(text string) { j.pass(text, func(one *share) func(string) { return one.run.Output }) }
	all.Withheld = func(text string) { j.pass(text, func(one *share) func(string) { return one.run.Withheld }) }
	return all
}

// progress records and forwards an event about a Machine.
func (j *joint) progress(n int, event engine.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one := j.come[n]
	if one.settled {
		return
	}
	if event.Kind == engine.EventCompleted {
		one.applied = append(one.applied,
			engine.Applied{Ref: event.Ref, Address: event.Address, Action: event.Action, ID: event.ID})
	}
	if one.run.Progress != nil {
		one.run.Progress(event)
	}
}

// quiet returns the batch's run without output.
func (j *joint) quiet() runner.RunSpec {
	all := j.come[0].run
	all.Sensitive, all.Progress, all.Output, all.Withheld = nil, nil, nil, nil
	for _, one := range j.come {
		all.Sensitive = append(all.Sensitive, one.run.Sensitive...)
	}
	return all
}

func (s *share) say(text string) {
	if s.run.Output != nil {
		s.run.Output(text)
	}
}

// pass forwards the engine's output to the Machine that it mentions, or to all.
func (j *joint) pass(text string, to func(*share) func(string)) {
	text, about, ok := j.layout.TextOf(text)
	if !ok && batch.IsOwn(text) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.each(func(n int, one *share) {
		if receive := to(one); receive != nil && (!ok || n == about) {
			receive(text)
		}
	})
}
