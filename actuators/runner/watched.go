package runner

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// watched is a Workspace whose reports are observed.
type watched struct {
	Workspace
	seen func(*engine.Report)
}

// Watched returns a Workspace that passes each report to seen before returning it, except for
// operations that must be repeated alone.
func Watched(w Workspace, seen func(*engine.Report)) Workspace {
	return watched{Workspace: w, seen: seen}
}

func (w watched) see(report *engine.Report, err error) (*engine.Report, error) {
	if !errors.Is(err, ErrAlone) {
		w.seen(report)
	}
	return report, err
}

// Plan implements Workspace.
func (w watched) Plan(ctx context.Context) (*engine.Report, error) {
	return w.see(w.Workspace.Plan(ctx))
}

// Apply implements Workspace.
func (w watched) Apply(ctx context.Context) (*engine.Report, error) {
	return w.see(w.Workspace.Apply(ctx))
}

// ApplyPlan implements Workspace.
func (w watched) ApplyPlan(ctx context.Context) (*engine.Report, error) {
	return w.see(w.Workspace.ApplyPlan(ctx))
}

// Destroy implements Workspace.
func (w watched) Destroy(ctx context.Context) (*engine.Report, error) {
	return w.see(w.Workspace.Destroy(ctx))
}
