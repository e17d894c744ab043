package live

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/plan/diff"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

// sameChanges are the Machines that need new ones for the same changes of the providerSpec, and which of these changes force that.
type sameChanges struct {
	machines []*machine
	// changed are the names of the fields that are changed.
	changed []string
	forcing map[string]bool
}

// plansOfForces plans each change of a field by itself, for one Machine of those with the same changes, where a new Machine is needed for
// several. The changes that alone need one are why.
func plansOfForces(o Options, all []*machine) []pendingPlan {
	var order []string
	of := map[string]*sameChanges{}
	for _, one := range all {
		if one.result.Result != preview.NewMachine || len(one.result.Fields) == 0 {
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

// changedNames returns the names of the fields of the providerSpec that attributes are of.
func changedNames(attributes []diff.Attribute) []string {
	var names []string
	for _, one := range attributes {
		if name := outermost(one.Path); name != "metadata" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// outermost returns the field that a path begins with.
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
			if outcome.Err == nil && lifecycle.CheckUpdate(outcome.Plan.Report, outcome.Plan.Broken, first.facts.Provisioned).Refused != "" {
				s.forcing[name] = true
			}
			if left == 0 {
				s.markForcing()
			}
		}))
	}
	return pendingPlans
}

// markForcing marks what was found; all changes where none needs a new Machine by itself.
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

// onlyChanging returns the variables with one field of the providerSpec changed, and the others as they were.
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
