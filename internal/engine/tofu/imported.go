package tofu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// showTimeout bounds `show` of a plan.
const showTimeout = 2 * time.Minute

// Imported returns the objects that the plan kept by Plan would import into the state, as they are now: a JSON object for each
// resource's address. They may hold secrets.
func (f *Workspace) Imported(ctx context.Context) (map[string]json.RawMessage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errors.New("reading the plan's imports: the run is closed")
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("reading the plan's imports: %w", err)
	}
	// Not cancelled with ctx: terraform-exec leaves a process behind when its context ends while it starts one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), showTimeout)
	defer cancel()
	f.engine.starts.Add(1)
	plan, err := f.slot.terraform.ShowPlanFile(ctx, planFile)
	if err != nil {
		return nil, fmt.Errorf("reading the plan's imports: %s", f.redact.Redact(err.Error()))
	}
	imported := map[string]json.RawMessage{}
	for _, change := range plan.ResourceChanges {
		if change.Change == nil || change.Change.Importing == nil {
			continue
		}
		object, err := json.Marshal(change.Change.Before)
		if err != nil {
			return nil, fmt.Errorf("reading the plan's import of %s: %w", change.Address, err)
		}
		imported[change.Address] = object
	}
	return imported, nil
}
