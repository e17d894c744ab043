package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// Planner plans a module offline, once for each input; an [offline.Planner] does.
type Planner interface {
	Plan(ctx context.Context, m offline.Module, inputs []offline.Input) []offline.Outcome
}

// batch is what there is to plan of one module. Requests with equal inputs share one.
type batch struct {
	module *module.Module
	inputs []offline.Input
	keys   []string
}

// batches sorts requests by module.
func batches(requests []*Request) []*batch {
	var all []*batch
	of, seen := map[string]*batch{}, map[string]bool{}
	for _, one := range requests {
		if seen[one.key] {
			continue
		}
		seen[one.key] = true
		reference := one.module.Reference()
		if of[reference] == nil {
			of[reference] = &batch{module: one.module}
			all = append(all, of[reference])
		}
		of[reference].inputs = append(of[reference].inputs, one.input)
		of[reference].keys = append(of[reference].keys, one.key)
	}
	return all
}

// Plan plans what was requested. The error joins those of all that cannot be planned; each names the object.
func Plan(ctx context.Context, requests []*Request, planner Planner, engine string) (*Preview, error) {
	outcomes := map[string]offline.Outcome{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, one := range batches(requests) {
		group.Go(func() {
			found := planner.Plan(ctx, ModuleOf(one.module), one.inputs)
			mu.Lock()
			defer mu.Unlock()
			for n, outcome := range found {
				outcomes[one.keys[n]] = outcome
			}
		})
	}
	group.Wait()
	preview := &Preview{FormatVersion: FormatVersion, Engine: engine, Sets: []*Set{}}
	var failed []error
	for _, one := range requests {
		result := outcomes[one.key]
		if result.Err != nil {
			failed = append(failed, one.failure(result.Err))
			continue
		}
		preview.Sets = append(preview.Sets, one.result(result.Plan))
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	preview.Summary = summarise(preview.Sets)
	return preview, nil
}

// result answers the set with what the plan says.
func (r *Request) result(plan *offline.Plan) *Set {
	set := r.set
	set.InstanceType, set.Region, set.Zone = outputOf(plan.Outputs, "instance_type"), outputOf(plan.Outputs, "region"), outputOf(plan.Outputs, "zone")
	set.Addresses = addressesOf(plan.Outputs)
	set.Reads, set.Open = plan.Reads, plan.Open
	set.Resources = ResourcesOf(plan)
	for _, warning := range plan.Warnings {
		if slices.Contains(set.Warnings, oneLine(warning.Detail)) {
			continue // a check that was told without the engine
		}
		set.Warnings = append(set.Warnings, oneLine(warning.Summary+": "+warning.Detail))
	}
	return &set
}

// failure says which object cannot be planned, and all that the engine says of it.
func (r *Request) failure(err error) error {
	where := fmt.Sprintf("%s:%d: document %d, %s", r.set.Source.File, r.set.Source.Line, r.set.Source.Document, r.set.title())
	var refused *tofu.Error
	if !errors.As(err, &refused) || len(refused.Diagnostics) == 0 {
		return fmt.Errorf("%s: %w", where, err)
	}
	var lines []string
	for _, one := range refused.Diagnostics {
		var text strings.Builder
		fmt.Fprintf(&text, "%s: %s: ", where, refused.Op)
		if one.File != "" {
			fmt.Fprintf(&text, "%s:%d of the module %s: ", one.File, one.Line, r.module.Name())
		}
		text.WriteString(oneLine(one.Summary))
		if one.Detail != "" {
			text.WriteString("; " + oneLine(one.Detail))
		}
		lines = append(lines, printable(text.String()))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// title names the object.
func (s *Set) title() string { return s.Kind + " " + s.Namespace + "/" + s.Name }
