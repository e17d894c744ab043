package preview

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"

	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// Resources returns the resources that a plan changes.
func Resources(plan *offline.Plan) []Resource {
	resources := make([]Resource, 0, len(plan.Resources))
	for _, one := range plan.Resources {
		resources = append(resources, Resource{Address: one.Address, Type: one.Type, Action: one.Action,
			Attributes: attributesOf(one), Unsure: one.Unsure})
	}
	return resources
}

// Names returns the top-level attributes that change, by resource address.
func Names(resources []Resource) map[string][]string {
	names := map[string][]string{}
	for _, resource := range resources {
		for _, attribute := range resource.Attributes {
			if attribute.Action != engine.ActionNoOp {
				name, _, _ := strings.Cut(attribute.Path, ".")
				name, _, _ = strings.Cut(name, "[")
				names[resource.Address] = append(names[resource.Address], name)
			}
		}
		names[resource.Address] = slices.Compact(names[resource.Address])
	}
	return names
}

// attributesOf returns the values of a new resource, or the changes of an existing one.
func attributesOf(resource offline.Resource) []Attribute {
	attributes := []Attribute{}
	if resource.Action == engine.ActionUpdate || resource.Action == engine.ActionReplace {
		attributes = append(attributes, Changes(resource.Values)...)
		if markForced(attributes, resource.Forces) && resource.Action == engine.ActionReplace {
			// The other changes only repeat the values of a new resource.
			attributes = slices.DeleteFunc(attributes, func(one Attribute) bool { return !one.Forces })
		}
		return attributes
	}
	for _, one := range leavesOf(resource.Values) {
		attributes = append(attributes, Attribute{Path: one.path, Action: engine.ActionCreate, Value: one.value})
	}
	return attributes
}

// outputValue returns a string output.
func outputValue(outputs offline.Values, name string) Value {
	leaves := leavesOf(outputs.Member(name))
	if len(leaves) != 1 || leaves[0].path != "" {
		return Value{}
	}
	return leaves[0].value
}

// Compare returns the differences between two decoded JSON values.
func Compare(before, after any) []Attribute {
	return Changes(offline.Values{Before: before, After: after})
}

// Changes returns what a change does to each value.
func Changes(values offline.Values) []Attribute {
	was, is := leavesOf(offline.Values{After: values.Before, Sensitive: values.SensitiveBefore}), leavesOf(values)
	before, after := map[string]leaf{}, map[string]bool{}
	for _, one := range was {
		before[one.path] = one
	}
	var found []Attribute
	for _, one := range is {
		after[one.path] = true
		old, had := before[one.path]
		switch {
		case !had:
			found = append(found, Attribute{Path: one.path, Action: engine.ActionCreate, Value: one.value})
		case !one.equals(old):
			found = append(found, Attribute{Path: one.path, Action: engine.ActionUpdate, Before: &old.value,
				Value: one.value})
		}
	}
	for _, one := range was {
		if !after[one.path] {
			found = append(found, Attribute{Path: one.path, Action: engine.ActionDelete, Before: &one.value})
		}
	}
	slices.SortStableFunc(found, func(a, b Attribute) int { return cmp.Compare(a.Path, b.Path) })
	return found
}

// equals reports whether two leaves are equal. An unknown value equals nothing.
func (l leaf) equals(other leaf) bool {
	return !l.value.Unknown && !l.unknown && reflect.DeepEqual(l.raw, other.raw)
}

// markForced marks the attributes at, below or above one of the paths, and reports whether there are any. Each path is
// a list of names and indices.
func markForced(attributes []Attribute, paths []any) (marked bool) {
	for _, one := range paths {
		forced := pathOf(one)
		for n := range attributes {
			path := attributes[n].Path
			attributes[n].Forces = attributes[n].Forces || isWithin(path, forced) || isWithin(forced, path)
			marked = marked || attributes[n].Forces
		}
	}
	return marked
}

// pathOf formats a path like an attribute's.
func pathOf(steps any) string {
	list, _ := steps.([]any)
	path := ""
	for _, step := range list {
		if name, ok := step.(string); ok {
			path = below(path, name)
			continue
		}
		path += fmt.Sprintf("[%v]", step)
	}
	return path
}

// isWithin reports whether path equals outer or lies below it.
func isWithin(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
}
