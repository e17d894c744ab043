package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// states presents the states of a batch's runs to the engine as one. It implements backend.Store.
type states struct {
	parts     *batch.Parts
	sessions  []*state.Session
	variables []byte

	mu sync.Mutex
	// whole is the state that the engine reads. saved holds each Machine's part; nil for one
	// without a state.
	whole []byte
	saved [][]byte
}

// newStates loads the stored states of runs.
func newStates(ctx context.Context, called *calledModule, runs []*share) (*states, error) {
	s := &states{}
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
	if s.whole, err = batch.State(stored); err != nil {
		return nil, err
	}
	s.saved = make([][]byte, len(runs))
	if s.whole == nil {
		return s, nil
	}
	s.saved, err = s.parts.Split(s.whole)
	for n := range stored {
		if stored[n] == nil && err == nil {
			s.saved[n] = nil
		}
	}
	return s, err
}

// Read implements backend.Store.
func (s *states) Read(context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole, nil
}

// Write implements backend.Store: it stores the state of each Machine that has changed.
func (s *states) Write(ctx context.Context, raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	split, err := s.parts.Split(raw)
	if err != nil {
		return err
	}
	errs := make([]error, len(split))
	var writes sync.WaitGroup
	for n, one := range split {
		if batch.Unchanged(s.saved[n], one) {
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
	return nil
}
