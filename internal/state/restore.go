package state

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// Restore makes an earlier state of this lineage current again, under a new serial. Use it after a
// run that dropped resources that still exist, such as a destroy that looked in another place. raw
// is the state from before the run; its serial does not matter. Restore returns the new serial, or
// a *RefusedError if raw is not a state or has another lineage.
func (s *Session) Restore(ctx context.Context, raw []byte) (uint64, error) {
	serial, err := s.putBack(ctx, raw)
	if err != nil {
		return 0, fmt.Errorf("restoring an earlier state of %s: %w", s.key, err)
	}
	return serial, nil
}

func (s *Session) putBack(ctx context.Context, raw []byte) (uint64, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	stored, err := s.snapshot()
	if err != nil {
		return 0, err
	}
	earlier, err := statefile.Parse(raw)
	if err != nil {
		return 0, err
	}
	serial := stored.Serial
	if stored.Raw == nil {
		serial = earlier.Serial
	} else if _, err := checkSuccessor(stored, &statefile.State{Serial: math.MaxUint64,
		Lineage: earlier.Lineage}, raw); err != nil {
		return 0, err
	}
	next, err := statefile.WithSerial(raw, serial+1)
	if err != nil {
		return 0, err
	}
	if stored.Raw != nil {
		// It may be current already, if the response to an earlier call was lost.
		if current, err := statefile.WithSerial(stored.Raw, serial+1); err != nil || bytes.Equal(current, next) {
			return serial, err
		}
	}
	earlier.Serial = serial + 1
	incoming, err := s.store.incoming(earlier, next)
	if err != nil {
		return 0, err
	}
	return serial + 1, s.put(ctx, incoming)
}
