package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// states presents the states of a batch's runs to the engine as one. It implements backend.Store.
type states struct {
	parts     *batch.Parts
	sessions  []*state.Session
	variables []byte

	// settle is called once for each Machine that is complete while the engine still works for
	// others. ctx is the engine's.
	settle func(n int)
	ctx    context.Context
	clock  clock.PassiveClock

	mu sync.Mutex
	// whole is the state that the engine reads. saved holds each Machine's part; nil for one
	// without a state.
	whole []byte
	saved [][]byte
	// settled are the Machines that settle was called for: their states are no longer written.
	settled []bool
	// unable means that the state of a destroyed Machine could not be stored.
	unable bool

	progress progress
}

// progress is what the engine has told of its work.
type progress struct {
	mu sync.Mutex
	// busy counts the objects of Machines that are being changed, and quiet is since when there are
	// none.
	busy  int
	quiet time.Time
	// complete counts created Machines; written counts those in the last stored state, stored at at.
	complete, written int
	at                time.Time
	// left counts the objects of each Machine that are still to be destroyed.
	left []int
	// emptying are the writes of Machines whose objects are all destroyed.
	emptying    sync.WaitGroup
	interrupted chan struct{}
}

const (
	// writesEvery is the least time between two states that an engine writes while it works.
	writesEvery = 21 * time.Second
	// quietFor is how long an engine is quiet at most between two objects of a Machine.
	quietFor = 2 * time.Second
	// quietAtFirst is how much longer it may be before the first.
	quietAtFirst = 10 * time.Second
	// pausePoll is how often a pause looks whether it is over.
	pausePoll = 200 * time.Millisecond
	// emptyTimeout bounds the write of a destroyed Machine's state.
	emptyTimeout = time.Minute
)

// newStates loads the stored states of runs. Only those of a layout apart can be written.
func newStates(ctx context.Context, called *calledModule, runs []*share, layout batch.Layout) (*states, error) {
	s := &states{clock: clock.RealClock{}}
	var variables, stored [][]byte
	var machines []batch.Part
	for _, one := range runs {
		snapshot, err := one.run.Session.Snapshot(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the states of a batch: %w", err)
		}
		identity, err := json.Marshal(one.run.Identity)
		if err != nil {
			return nil, fmt.Errorf("writing a run's identity: %w", err)
		}
		variables, stored = append(variables, one.run.Variables), append(stored, snapshot.Raw)
		machines = append(machines, batch.Part{Run: one.run.ID, Identity: identity, Lineage: one.run.Lineage})
		s.sessions = append(s.sessions, one.run.Session)
	}
	var err error
	if s.variables, err = called.Variables(variables); err != nil {
		return nil, err
	}
	if s.parts, err = called.Parts(machines, stored); err != nil {
		return nil, err
	}
	if s.whole, err = layout.State(stored); err != nil {
		return nil, err
	}
	s.saved, s.settled, s.progress.left = make([][]byte, len(runs)), make([]bool, len(runs)), make([]int, len(runs))
	s.progress.interrupted = make(chan struct{})
	if s.whole == nil || layout != batch.Apart(len(runs)) {
		return s, nil
	}
	if s.saved, err = s.parts.Split(s.whole); err != nil {
		return nil, err
	}
	for n := range stored {
		if stored[n] == nil {
			s.saved[n] = nil
		} else if _, s.progress.left[n], err = batch.Emptied(stored[n]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Read implements backend.Store.
func (s *states) Read(context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole, nil
}

// Write implements backend.Store: it stores the state of each Machine that has changed, and settles
// those that are complete.
func (s *states) Write(ctx context.Context, raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	split, complete, err := s.parts.SplitComplete(raw)
	if err != nil {
		return err
	}
	errs := make([]error, len(split))
	var writes sync.WaitGroup
	for n, one := range split {
		if s.settled[n] || batch.Unchanged(s.saved[n], one) {
			continue
		}
		writes.Go(func() {
			if errs[n] = s.sessions[n].Put(ctx, one); errs[n] == nil {
				s.saved[n] = one
			}
		})
	}
	writes.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.whole = raw
	done := 0
	for n := range complete {
		if complete[n] {
			done++
			s.settleOne(n)
		}
	}
	s.progress.stored(done, s.clock.Now())
	return nil
}

// settleOne settles a Machine. The caller holds the lock.
func (s *states) settleOne(n int) {
	if !s.settled[n] {
		s.settled[n] = true
		s.settle(n)
	}
}

// empty stores that everything of a Machine is destroyed. If that fails once, the engine's own write
// at its end serves all.
func (s *states) empty(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unable {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, emptyTimeout)
	defer cancel()
	empty, _, err := batch.Emptied(s.saved[n])
	if s.unable = err != nil || s.sessions[n].Put(ctx, empty) != nil; s.unable {
		return
	}
	s.saved[n] = empty
	s.settleOne(n)
}

// interrupt ends every pause: an engine that is told to stop waits for what it reads.
func (s *states) interrupt() { close(s.progress.interrupted) }

// end is called when the engine has ended. Nothing settles after it; a write that the engine has
// sent may still be stored.
func (s *states) end() {
	s.progress.emptying.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle = func(int) {}
}

// note follows the engine's events. about is the Machine of one inside a module call.
func (s *states) note(event engine.Event, about int, inside bool) {
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.clock.Now()
	switch ended := event.Kind == engine.EventCompleted || event.Kind == engine.EventFailed; {
	case !inside && batch.IsMarker(event):
		p.complete++
	case !inside || event.Data: // engines report no end of a read that fails
	case event.Kind == engine.EventStarted:
		p.busy++
	case ended:
		p.busy--
		p.quiet = now
		if p.at.IsZero() {
			p.at = now
		}
		if event.Kind != engine.EventCompleted || event.Action != engine.ActionDelete {
			return
		}
		if p.left[about]--; p.left[about] == 0 {
			p.emptying.Go(func() { s.empty(about) })
		}
	}
}

// stored records that a state with so many complete Machines is stored.
func (p *progress) stored(complete int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written, p.at = complete, now
}

// Pause implements backend.Pauser: the engine goes on, and writes its state, when a Machine is
// complete that the last one did not show, or when there is nothing to wait for.
func (s *states) Pause(ctx context.Context) {
	poll := time.NewTicker(pausePoll)
	defer poll.Stop()
	s.progress.pauses(s.clock.Now())
	for !s.progress.goesOn(s.clock.Now(), len(s.sessions)) {
		select {
		case <-ctx.Done():
			return
		case <-s.progress.interrupted:
			return
		case <-poll.C:
		}
	}
}

// pauses notes that the engine waits. If it has begun nothing yet, it has some time for that: it may
// never, as when its provider cannot be configured.
func (p *progress) pauses(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet.IsZero() {
		p.quiet = now.Add(quietAtFirst)
	}
}

func (p *progress) goesOn(now time.Time, machines int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.complete == machines:
		return true
	case p.busy == 0:
		return now.Sub(p.quiet) > quietFor
	default:
		return p.complete > p.written && now.Sub(p.at) > writesEvery
	}
}
