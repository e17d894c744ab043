package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// Planner plans a module for each input, as [offline.Planner] does.
type Planner interface {
	Plan(ctx context.Context, m offline.Module, inputs []offline.Input) []offline.Outcome
}

// batch holds the inputs of one module. Requests with equal inputs share one.
type batch struct {
	module *module.Module
	inputs []offline.Input
	keys   []string
}

// batches groups requests by module.
func batches(requests []*Request) []*batch {
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

// Plan plans the requests. The error joins all failures; each names its object.
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
func setOf(r *Request, plan *offline.Plan) *Set {
	set := describe(r)
	set.InstanceType, set.Region, set.Zone = outputValue(plan.Outputs, "instance_type"), outputValue(plan.Outputs,
		"region"), outputValue(plan.Outputs, "zone")
	set.Addresses = addressesOf(plan.Outputs)
	set.Reads, set.Open = plan.Reads, plan.Open
	set.Resources = Resources(plan)
	for _, warning := range plan.Warnings {
		if slices.Contains(set.Warnings, print.Collapse(warning.Detail)) {
			continue // already reported by a check
		}
		set.Warnings = append(set.Warnings, print.Collapse(warning.Summary+": "+warning.Detail))
	}
	return set
}

// notPlanned returns the engine's errors with the object that cannot be planned.
func notPlanned(r *Request, err error) error {
	kind, namespace, name := r.Title()
	where := r.Source.of(kind, namespace, name)
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
		line.WriteString(print.Collapse(one.Summary))
		if one.Detail != "" {
			line.WriteString("; " + print.Collapse(one.Detail))
		}
		lines = append(lines, print.Printable(line.String()))
	}
	return errors.New(strings.Join(lines, "\n"))
}
