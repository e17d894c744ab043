package preview

import (
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// Rollout is how a MachineDeployment would bring its Machines to the template.
type Rollout struct {
	Strategy v1beta1.MachineDeploymentStrategyType `json:"strategy"`
	Paused   bool                                  `json:"paused,omitempty"`
	// MaxSurge and MaxUnavailable are numbers of Machines.
	MaxSurge       int `json:"maxSurge"`
	MaxUnavailable int `json:"maxUnavailable"`
	// InPlace and Replaced are the numbers of Machines that the rollout changes, Kept of those that it leaves as they are
	// although they need a new Machine.
	InPlace  int `json:"inPlace"`
	Replaced int `json:"replaced"`
	Kept     int `json:"kept,omitempty"`
	// Fields are those whose change needs a new Machine.
	Fields []string `json:"fields,omitempty"`
	// Budgets allow no eviction now from Nodes that would be drained.
	Budgets []Budget `json:"podDisruptionBudgets,omitempty"`
	// Surge are the instances that are needed beyond replicas, at a time.
	Surge []Surge `json:"surge,omitempty"`
	// Order says what happens within which bounds.
	Order []string `json:"order,omitempty"`
	// Notes say what could not be read.
	Notes []string `json:"notes,omitempty"`

	replicas     int
	deletePolicy machinev1beta1.MachineSetDeletePolicy
}

// Budget is a PodDisruptionBudget, with the Machines whose drain it would hold.
type Budget struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Machines  []string `json:"machines"`
}

// Surge is a number of instances of one type.
type Surge struct {
	Instances    int   `json:"instances"`
	InstanceType Value `json:"instanceType"`
	Region       Value `json:"region"`
	Zone         Value `json:"zone"`
}

// strategies are the valid ones; the empty one is the default.
var strategies = []v1beta1.MachineDeploymentStrategyType{
	"", v1beta1.InPlaceOrReplace, v1beta1.InPlace, v1beta1.RollingUpdate, v1beta1.Recreate, v1beta1.OnDelete,
}

// checkStrategy validates a strategy as the API server does.
func (i *item) checkStrategy(s *v1beta1.MachineDeploymentStrategy) Problems {
	var problems Problems
	if !slices.Contains(strategies, s.Type) {
		var names []string
		for _, one := range strategies[1:] {
			names = append(names, string(one))
		}
		problems = append(problems, i.problem("spec.strategy.type", fmt.Sprintf("it is %q", s.Type),
			"write one of "+strings.Join(names, ", ")))
	}
	if s.RollingUpdate == nil {
		return problems
	}
	for field, value := range map[string]*intstr.IntOrString{
		"maxSurge": s.RollingUpdate.MaxSurge, "maxUnavailable": s.RollingUpdate.MaxUnavailable,
	} {
		given := ptr.Deref(value, intstr.FromInt32(0))
		if number, err := intstr.GetScaledValueFromIntOrPercent(&given, 100, true); err != nil || number < 0 {
			problems = append(problems, i.problem("spec.strategy.rollingUpdate."+field, fmt.Sprintf("it is %q", value),
				"write a number, or a percentage such as 25%"))
		}
	}
	return problems
}

// NewRollout returns the rollout of a MachineDeployment with so many replicas, before its Machines are known.
// [item.checkStrategy] has rejected invalid bounds.
func NewRollout(d *v1beta1.MachineDeployment, replicas int) *Rollout {
	r := &Rollout{Strategy: d.Spec.Strategy.TypeOrDefault(), Paused: d.Spec.Paused, replicas: replicas}
	r.MaxSurge, r.MaxUnavailable, _ = d.Spec.Strategy.Bounds(replicas)
	if bounds := d.Spec.Strategy.RollingUpdate; bounds != nil {
		r.deletePolicy = bounds.DeletePolicy
	}
	return r
}

// rollOut completes the rollout from the results of the Machines.
func (s *Set) rollOut() {
	r := s.Live.Rollout
	if r == nil {
		return
	}
	for _, machine := range s.Live.Machines {
		switch machine.Result {
		case InPlace:
			r.InPlace++
		case Replaced:
			r.Replaced++
		case NewMachine:
			r.Kept++
		}
		for _, field := range machine.Fields {
			if field.Forces && !slices.Contains(r.Fields, field.Path) {
				r.Fields = append(r.Fields, field.Path)
			}
		}
	}
	surge := min(r.MaxSurge, r.Replaced)
	if surge > 0 && r.Strategy != v1beta1.Recreate {
		r.Surge = []Surge{{Instances: surge, InstanceType: s.InstanceType, Region: s.Region, Zone: s.Zone}}
	}
	r.Order = r.order()
}

// order describes the bounds of what happens.
func (r *Rollout) order() []string {
	var order []string
	if r.Paused {
		order = append(order, "Paused: nothing happens until the MachineDeployment is resumed.")
	}
	if r.InPlace > 0 {
		order = append(order, fmt.Sprintf("In place: %s, at most %d at a time.", count(r.InPlace, "Machine"),
			max(1, r.MaxUnavailable)))
	}
	switch {
	case r.Replaced > 0 && r.Strategy == v1beta1.Recreate:
		order = append(order, fmt.Sprintf("Replaced: %s, all deleted before new ones are created.",
			count(r.Replaced, "Machine")))
	case r.Replaced > 0:
		line := fmt.Sprintf("Replaced: %s, with at most %d in all and at least %d available", count(r.Replaced, "Machine"),
			r.replicas+r.MaxSurge, max(0, r.replicas-r.MaxUnavailable))
		if r.deletePolicy != "" {
			line += fmt.Sprintf(" (delete policy %s)", r.deletePolicy)
		}
		order = append(order, line+".")
	}
	switch {
	case r.Kept > 0 && r.Strategy == v1beta1.OnDelete:
		order = append(order, fmt.Sprintf("Replaced once deleted: %s.", count(r.Kept, "Machine")))
	case r.Kept > 0:
		order = append(order, fmt.Sprintf("Not rolled out: %s. The strategy %s replaces none.", count(r.Kept, "Machine"),
			r.Strategy))
	}
	return order
}

// rolloutLines describes a rollout for people, or returns nil.
func rolloutLines(s *Set) []string {
	r := s.Live.Rollout
	if r == nil {
		return nil
	}
	lines := slices.Clone(r.Order)
	if len(r.Fields) > 0 {
		lines = append(lines, "New Machines are needed because of "+strings.Join(r.Fields, ", ")+".")
	}
	for _, one := range r.Surge {
		line := "The surge needs " + count(one.Instances, "more instance")
		if kind := one.InstanceType.Cell(); kind != "" {
			line += " of type " + kind
		}
		if zone := one.Zone.Cell(); zone != "" {
			line += " in " + zone
		}
		lines = append(lines, line+".")
	}
	for _, one := range r.Budgets {
		lines = append(lines, fmt.Sprintf("PodDisruptionBudget %s/%s allows no eviction now and would hold the drain of %s.",
			one.Namespace, one.Name, (&group{names: one.Machines}).heading()))
	}
	return append(lines, r.Notes...)
}

// NotInPlace returns an error that says which Machines would not keep their instances, and why; nil if all would.
func (p *Preview) NotInPlace() error {
	var problems []string
	for _, set := range p.Sets {
		if set.Live == nil {
			continue
		}
		var names, reasons []string
		for _, machine := range set.Live.Machines {
			if !slices.Contains([]EditResult{NewMachine, Replaced, Refused, Undecided}, machine.Result) {
				continue
			}
			names = append(names, machine.Name)
			if why := reason(machine); !slices.Contains(reasons, why) {
				reasons = append(reasons, why)
			}
		}
		if len(names) > 0 {
			problems = append(problems, fmt.Sprintf("%s %s/%s: %d of %s cannot change in place, because of %s: %s", set.Kind,
				set.Namespace, set.Name, len(names), count(len(set.Live.Machines), "Machine"), strings.Join(reasons, "; "),
				(&group{names: names}).heading()))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("--expect in-place: %s", strings.Join(problems, "\n"))
}
