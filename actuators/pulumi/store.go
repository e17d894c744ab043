package pulumi

import (
	"context"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// store stores a run's checkpoints as states of its Machine.
type store struct {
	session *state.Session
	lineage string
}

// load returns the stored checkpoint, or nil.
func (s store) load(ctx context.Context) ([]byte, error) {
	snapshot, err := s.session.Snapshot(ctx)
	if err != nil || snapshot.Raw == nil {
		return nil, err
	}
	stored, err := statefile.ParseCheckpoint(snapshot.Raw)
	if err != nil {
		return nil, fmt.Errorf("reading the Machine's state: %w", err)
	}
	return stored.Raw, nil
}

// save stores a checkpoint.
func (s store) save(ctx context.Context, checkpoint []byte) error {
	snapshot, err := s.session.Snapshot(ctx)
	if err != nil {
		return err
	}
	next, err := statefile.Checkpoint{Serial: snapshot.Serial + 1, Lineage: s.lineage, Raw: checkpoint}.Encode()
	if err != nil {
		return err
	}
	return s.session.Put(ctx, next)
}
