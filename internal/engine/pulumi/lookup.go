package pulumi

import (
	"context"
	"errors"
)

// RunLookup runs a program's lookup, which only reads, and returns the checkpoint with what it found, for LookupResources and Adopt. Where the object
// does not exist it fails: with the class engine.ImportMissing where Pulumi says so, else with the provider's own error.
func (e *Engine) RunLookup(ctx context.Context, r RunSpec) (lookup []byte, err error) {
	r.ID += "-lookup"
	r.Lookup, r.Checkpoint, r.Progress = true, nil, nil
	r.Save = func(context.Context, []byte) error { return nil }
	workspace, err := e.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, workspace.Close()) }()
	if _, err = workspace.Apply(ctx); err != nil {
		return nil, err
	}
	return workspace.Checkpoint()
}
