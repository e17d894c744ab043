package tofu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// showTimeout limits `show` of a plan.
const showTimeout = 2 * time.Minute

// Planned returns what the plan kept by Plan contains beyond its report.
func (f *Workspace) Planned(ctx context.Context) (*engine.PlannedObjects, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errors.New("reading the plan: the run is closed")
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	// Not cancelled with ctx: terraform-exec leaves the process behind if its context ends while it is
	// starting.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), showTimeout)
	defer cancel()
	f.engine.starts.Add(1)
	plan, err := f.slot.terraform.ShowPlanFile(ctx, planFile)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %s", f.redact.Redact(err.Error()))
	}
	return plannedObjects(plan)
}

func plannedObjects(plan *tfjson.Plan) (*engine.PlannedObjects, error) {
	planned := &engine.PlannedObjects{Imported: map[string]json.RawMessage{}, Changed: map[string][]string{},
		Outputs: map[string]json.RawMessage{}}
	for _, change := range plan.ResourceChanges {
		if change.Change == nil {
			continue
		}
		if change.Change.Importing != nil {
			object, err := json.Marshal(change.Change.Before)
			if err != nil {
				return nil, fmt.Errorf("reading the plan's import of %s: %w", change.Address, err)
			}
			planned.Imported[change.Address] = object
		}
		if change.Change.Actions.Update() || change.Change.Actions.Replace() {
			planned.Changed[change.Address] = changedAttributes(change.Change)
		}
	}
	for name, output := range plan.OutputChanges {
		known := output.AfterUnknown == nil || output.AfterUnknown == false
		if sensitive := output.AfterSensitive; !known || sensitive != nil && sensitive != false {
			continue
		}
		value, err := json.Marshal(output.After)
		if err != nil {
			return nil, fmt.Errorf("reading the plan's output %s: %w", name, err)
		}
		planned.Outputs[name] = value
	}
	return planned, nil
}

// changedAttributes returns the sorted names of the attributes that would change.
func changedAttributes(change *tfjson.Change) []string {
	before, _ := change.Before.(map[string]any)
	after, _ := change.After.(map[string]any)
	unknown, _ := change.AfterUnknown.(map[string]any)
	var names []string
	for name := range after {
		if !sameValue(before[name], after[name]) {
			names = append(names, name)
		}
	}
	for name, value := range before {
		if _, kept := after[name]; !kept && value != nil {
			names = append(names, name)
		}
	}
	for name, is := range unknown {
		if is == true {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sameValue compares JSON values. Plans have numbers as strings. Null and empty values count as
// equal, since providers on the older SDK mix them up.
func sameValue(a, b any) bool {
	if isNothing(a) && isNothing(b) {
		return true
	}
	left, leftErr := json.Marshal(a)
	right, rightErr := json.Marshal(b)
	return leftErr == nil && rightErr == nil && bytes.Equal(left, right)
}

func isNothing(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
