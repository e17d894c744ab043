package live

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// sameChanges groups Machines that must be replaced for the same changes of the providerSpec, and records which of
// these changes force the replacement.
type sameChanges struct {
	machines []*machine
	// changed names the changed fields.
	changed []string
	forcing map[string]bool
}

// plansOfForces finds out which changes force a replacement. For one Machine of each group with several changes, it
// plans each change by itself.
func plansOfForces(o Options, all []*machine) []pendingPlan {
	var order []string
	of := map[string]*sameChanges{}
	for _, one := range all {
		if one.result.Result != preview.NewMachine || one.inputs == nil || len(one.result.Fields) == 0 {
			continue
		}
		key, err := json.Marshal(one.result.Fields)
		if err != nil {
			continue
		}
		name := one.inputs.module.Reference() + "\n" + string(key)
		if of[name] == nil {
			of[name] = &sameChanges{changed: changedNames(one.result.Fields), forcing: map[string]bool{}}
			order = append(order, name)
		}
		of[name].machines = append(of[name].machines, one)
	}
	var pendingPlans []pendingPlan
	for _, name := range order {
		pendingPlans = append(pendingPlans, of[name].pendingPlans(o)...)
	}
	return pendingPlans
}

// changedNames returns the top-level providerSpec fields of the attributes.
func changedNames(attributes []preview.Attribute) []string {
	var names []string
	for _, one := range attributes {
		if name := outermost(one.Path); name != "metadata" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// outermost returns the first field of a path.
func outermost(path string) string {
	if end := strings.IndexAny(path, ".["); end > 0 {
		return path[:end]
	}
	return path
}

func (s *sameChanges) pendingPlans(o Options) []pendingPlan {
	if len(s.changed) == 1 {
		s.mark(s.changed)
		return nil
	}
	var pendingPlans []pendingPlan
	first := s.machines[0].inputs
	left := 0
	for _, name := range s.changed {
		variables, err := onlyChanging(first, name, s.changed)
		if err != nil {
			continue
		}
		left++
		pendingPlans = append(pendingPlans, o.newPendingPlan(first, variables, func(outcome offline.Outcome) {
			left--
			if outcome.Err == nil && lifecycle.CheckUpdate(outcome.Plan.Report, outcome.Plan.Broken,
				first.facts.Provisioned).Refused != "" {
				s.forcing[name] = true
			}
			if left == 0 {
				s.markForcing()
			}
		}))
	}
	return pendingPlans
}

// markForcing marks the changes that force a replacement, or all changes if none forces one by itself.
func (s *sameChanges) markForcing() {
	names := slices.Collect(maps.Keys(s.forcing))
	if len(names) == 0 {
		names = s.changed
	}
	s.mark(names)
}

func (s *sameChanges) mark(names []string) {
	for _, one := range s.machines {
		for n := range one.result.Fields {
			one.result.Fields[n].Forces = slices.Contains(names, outermost(one.result.Fields[n].Path))
		}
	}
}

// onlyChanging returns the variables with only the named field of the providerSpec changed.
func onlyChanging(of *inputs, name string, changed []string) ([]byte, error) {
	variables := variablesIn(of.variables)
	var was, is map[string]json.RawMessage
	if err := json.Unmarshal(of.applied["provider_spec"], &was); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(variables["provider_spec"], &is); err != nil {
		return nil, err
	}
	for _, other := range changed {
		if other == name {
			continue
		}
		if old, had := was[other]; had {
			is[other] = old
		} else {
			delete(is, other)
		}
	}
	raw, err := json.Marshal(is)
	if err != nil {
		return nil, err
	}
	variables["provider_spec"] = raw
	return json.Marshal(variables)
}
