package iac

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const (
	// sizeKept is how long a size counts, sizeFailed how long a failed read is not repeated.
	sizeKept, sizeFailed = time.Hour, 5 * time.Minute
	// sizeLost is when a read that has not ended is repeated: the pool may have dropped it. A run
	// takes less.
	sizeLost = time.Hour
	// sizePoll is when to ask for the outcome of a read.
	sizePoll = 5 * time.Second
)

// sizes are the sizes of instance types that the infrastructure was asked for, by providerSpec.
type sizes struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*sizeRead
}

// sizeRead is one question and its answer.
type sizeRead struct {
	at    time.Time
	ended bool
	found json.RawMessage
	err   error
}

// sizeRequest is a template whose instance type no catalog has.
type sizeRequest struct {
	machine      *machinev1beta1.Machine
	served       *module.Module
	providerSpec cty.Value
	unknown      *actuators.UnknownInstanceTypeError
}

// read returns the size, or starts to read it and returns a RequeueAfterError.
func (s *sizes) read(ctx context.Context, a *Actuator, r sizeRequest) (*module.Size, error) {
	key := sha256.Sum256([]byte(r.machine.Namespace + "\n" + r.served.Reference() + "\n" +
		string(r.machine.Spec.ProviderSpec.Value.Raw)))
	now := a.clock.Now()
	s.mu.Lock()
	maps.DeleteFunc(s.known, func(_ [sha256.Size]byte, one *sizeRead) bool {
		kept := sizeKept
		switch {
		case !one.ended:
			kept = sizeLost
		case one.err != nil:
			kept = sizeFailed
		}
		return now.Sub(one.at) >= kept
	})
	known, asked := s.known[key]
	if !asked {
		known = &sizeRead{at: now}
		if s.known == nil {
			s.known = map[[sha256.Size]byte]*sizeRead{}
		}
		s.known[key] = known
	}
	ended, found, err := known.ended, known.found, known.err
	s.mu.Unlock()
	if !asked {
		if err := s.ask(ctx, a, r, known); err != nil {
			s.mu.Lock()
			delete(s.known, key)
			s.mu.Unlock()
			return nil, r.failed(err)
		}
	}
	switch {
	case !ended:
		return nil, actuators.InProgress(sizePoll, "reading the size of the instance type %s", r.unknown.Type)
	case err != nil:
		return nil, r.failed(err)
	}
	return module.ReadSize(r.served, r.providerSpec, found)
}

// ask submits the read.
func (s *sizes) ask(ctx context.Context, a *Actuator, r sizeRequest, known *sizeRead) error {
	machine := r.machine.DeepCopy()
	machine.Name, machine.UID = "capacity", types.UID("00000000-0000-0000-0000-000000000000")
	f, err := lifecycle.NewFacts(machine, nil, a.installation)
	if err != nil {
		return err
	}
	choice, err := a.desired.ChooseUpdate(ctx, machine, f)
	switch {
	case err != nil:
		return err
	case choice.State == nil:
		return choice.Withheld
	}
	_, err = a.read(machine, f, choice.State, engine.SearchCapacity, module.OutputCapacity,
		func(found json.RawMessage, err error) { s.end(a, known, found, err) })
	return err
}

func (s *sizes) end(a *Actuator, known *sizeRead, found json.RawMessage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*known = sizeRead{at: a.clock.Now(), ended: true, found: found, err: err}
}

// failed returns the UnknownInstanceTypeError for a read that failed.
func (r sizeRequest) failed(err error) error {
	failed := actuators.UnknownInstanceType(r.unknown.Type, r.unknown.Provider, "%s; the infrastructure was asked: %s",
		r.unknown.Message, err)
	failed.RetryAfter = sizeFailed
	return failed
}
