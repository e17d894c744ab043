package pulumi

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// RunSearch runs the program of a search, which only reads, and returns a checkpoint with its
// results for LookupResources and Adopt. If the object does not exist, it fails: with the class
// failure.ImportMissing if Pulumi says so, otherwise with the provider's own error.
func (e *Engine) RunSearch(ctx context.Context, search engine.Search, r RunSpec) (lookup []byte, err error) {
	r.ID += "-" + string(search)
	r.Search = search
	r.Checkpoint, r.Progress = nil, nil
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
