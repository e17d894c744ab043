package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/diff"
	"github.com/machine-iac/machine-iac-operator/internal/plan/manifest"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/text"
)

// Planner plans a module for each of the inputs, such as an [offline.Planner].
type Planner interface {
	Plan(ctx context.Context, m offline.Module, inputs []offline.Input) []offline.Outcome
}

// batch is what to plan with one module. Requests with equal inputs share one.
type batch struct {
	module *module.Module
	inputs []offline.Input
	keys   []string
}

// batches sorts requests by module.
func batches(requests []*manifest.Request) []*batch {
	var all []*batch
	of, seen := map[string]*batch{}, map[string]bool{}
	for _, one := range requests {
		if seen[one.Key()] {
			continue
		}
		seen[one.Key()] = true
		reference := one.Module.Reference()
		if of[reference] == nil {
			of[reference] = &batch{module: one.Module}
			all = append(all, of[reference])
		}
		of[reference].inputs = append(of[reference].inputs, one.Input)
		of[reference].keys = append(of[reference].keys, one.Key())
	}
	return all
}

// Plan plans what was requested. The error joins those of all that cannot be planned; each names the object.
func Plan(ctx context.Context, requests []*manifest.Request, planner Planner, engine string) (*Preview, error) {
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
		outcome := outcomes[one.Key()]
		if outcome.Err != nil {
			failed = append(failed, notPlanned(one, outcome.Err))
			continue
		}
		preview.Sets = append(preview.Sets, setOf(one, outcome.Plan))
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	preview.Summary = Summarise(preview.Sets)
	return preview, nil
}

// setOf returns a request with its plan.
func setOf(r *manifest.Request, plan *offline.Plan) *Set {
	set := describe(r)
	set.InstanceType, set.Region, set.Zone = diff.Output(plan.Outputs, "instance_type"), diff.Output(plan.Outputs, "region"), diff.Output(plan.Outputs, "zone")
	set.Addresses = addressesOf(plan.Outputs)
	set.Reads, set.Open = plan.Reads, plan.Open
	set.Resources = diff.Resources(plan)
	for _, warning := range plan.Warnings {
		if slices.Contains(set.Warnings, text.OneLine(warning.Detail)) {
			continue // a check that was reported without the engine
		}
		set.Warnings = append(set.Warnings, text.OneLine(warning.Summary+": "+warning.Detail))
	}
	return set
}

// notPlanned returns an error with the object that cannot be planned, and every error of the engine.
func notPlanned(r *manifest.Request, err error) error {
	kind, namespace, name := r.Title()
	where := fmt.Sprintf("%s:%d: document %d, %s %s/%s", r.Source.File, r.Source.Line, r.Source.Document, kind, namespace, name)
	var refused *failure.Error
	if !errors.As(err, &refused) || len(refused.Diagnostics) == 0 {
		return fmt.Errorf("%s: %w", where, err)
	}
	var lines []string
	for _, one := range refused.Diagnostics {
		var line strings.Builder
		fmt.Fprintf(&line, "%s: %s: ", where, refused.Op)
		if one.File != "" {
			fmt.Fprintf(&line, "%s:%d of the module %s: ", one.File, one.Line, r.Module.Name())
		}
		line.WriteString(text.OneLine(one.Summary))
		if one.Detail != "" {
			line.WriteString("; " + text.OneLine(one.Detail))
		}
		lines = append(lines, text.Printable(line.String()))
	}
	return errors.New(strings.Join(lines, "\n"))
}
